import type { Locator } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { CallOrder, DeniedThing } from '../../example-app/control-room/protocol.js'
import { NOT_DONE, useRoom } from './page-panels.js'

const room = useRoom()

/** The radio button of each kind, and what is denied by it. */
const KINDS: readonly {
  readonly kind: DeniedThing['kind']
  readonly choice: string
  readonly field: string
  /** The call that is refused then. */
  readonly call: Partial<CallOrder>
}[] = [
  { kind: 'caller', choice: 'a caller', field: 'Caller', call: {} },
  { kind: 'key', choice: 'a key', field: 'Key id', call: {} },
  { kind: 'token', choice: 'a token', field: 'jti of the token', call: { isTokenReused: true } },
]

async function offered(panel: Locator): Promise<string[]> {
  const options = await panel.locator('datalist option').all()
  return Promise.all(options.map(async (option) => (await option.getAttribute('value')) ?? ''))
}

describe.each(KINDS)('a $kind', ({ kind, choice, field, call }) => {
  it('is denied to every receiver, and allowed again', async () => {
    const { page, panel } = await room.open('denylist')
    const [sent] = await Promise.all([
      page.waitForRequest((request) => request.url().endsWith('/api/call')),
      page.locator('#compose').getByRole('button', { name: 'Send it' }).click(),
    ])
    await page.locator('.last-call').getByText('the caller got 200').waitFor()
    // The last token is the page's own.
    const again = { ...call, page: sent.postDataJSON().page }

    await panel.getByLabel(choice, { exact: true }).check()
    const input = panel.getByLabel(field, { exact: true })
    const value =
      kind === 'key'
        ? (room.state().core.keys.find(({ isSigning }) => isSigning)?.kid ?? '')
        : await input.inputValue()
    expect(await offered(panel)).toContain(value)
    await input.fill(value)
    await panel.getByLabel('Reason').fill('a test of it')
    await panel.getByRole('button', { name: 'Deny' }).click()

    const entry = panel.locator(`[data-kind="${kind}"][data-value="${value}"]`)
    for (const receiver of ['orders-1', 'orders-2'] as const) {
      await entry.locator(`[data-applied="${receiver}"]`).waitFor()
      const { operator } = await room.call({ ...again, receiver })
      expect(operator).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(kind) })
    }
    expect(await entry.textContent()).toMatch(/a test of it.*without end.*orders-1: applied after/s)

    await entry.getByRole('button', { name: 'Allow again' }).click()
    await entry.waitFor({ state: 'detached' })
    expect(room.state().denied).toEqual([])
    for (const receiver of ['orders-1', 'orders-2'] as const) {
      await expect
        .poll(async () => (await room.call({ ...again, receiver })).operator.outcome)
        .toBe('accepted')
    }
  })
})

it('ends by itself what was denied for some seconds', async () => {
  const { panel } = await room.open('denylist')
  await panel.getByLabel('Caller', { exact: true }).fill('reporting')
  await panel.getByLabel('Seconds').fill('4')
  await panel.getByRole('button', { name: 'Deny' }).click()
  const entry = panel.locator('[data-value="reporting"]')
  await entry.getByText('for another').waitFor()
  await entry.waitFor({ state: 'detached' })
  await expect
    .poll(async () => (await room.call({ caller: 'reporting' })).operator.outcome)
    .toBe('accepted')
})

it('says why nothing was denied', async () => {
  const { panel } = await room.open('denylist', NOT_DONE)
  const caller = panel.getByLabel('Caller', { exact: true })
  const seconds = panel.getByLabel('Seconds')
  for (const [value, forSeconds, why] of [
    ['', '', 'the caller must have 1 to 256 characters'],
    ['a'.repeat(501), '', 'the caller must have 1 to 256 characters'],
    ['nobody', 'ten', 'the seconds must be a number, or empty'],
    ['nobody', '0', 'the seconds must be more than 0, at most 2592000, or empty'],
  ] as const) {
    await caller.fill(value)
    await seconds.fill(forSeconds)
    await panel.getByRole('button', { name: 'Deny' }).click()
    await panel.getByRole('alert').filter({ hasText: why }).waitFor()
  }
  expect(room.state().denied).toEqual([])
})
