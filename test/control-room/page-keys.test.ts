import { expect, it } from 'vitest'
import { until } from '../support/until.js'
import { statusOf, useRoom } from './page-panels.js'

/** Receivers of the room refresh their key set every ten seconds. */
const REFRESHED_A_MOMENT_AGO_SECONDS = 3

/** A set that is stale for no longer than a second is not shown as stale afterwards. */
const MAX_REFRESH_MS = 1500

const room = useRoom()

/** Of the key that signs what is signed by no static key. */
const signingKid = (): string =>
  room.state().core.keys.find(({ kind, isSigning }) => kind === 'dynamic' && isSigning)?.kid ?? ''

it('rotates the signing key, which a receiver fetches when it is brought a token by it', async () => {
  const { panel } = await room.open('keys')
  const before = signingKid()
  await panel.getByRole('button', { name: 'Rotate the signing key' }).click()
  await until('another key signs', async () => signingKid() !== before)
  const kid = signingKid()
  const signing = panel.locator(`[data-kid="${kid}"][data-signing="true"]`)
  await signing.getByText('signs', { exact: true }).waitFor()

  const { operator } = await room.call({ receiver: 'orders-1' })
  expect(operator).toMatchObject({ outcome: 'accepted', keyId: kid })
  await signing.getByText('Known to orders-1').waitFor()
})

it('removes a key, which no receiver takes once it has fetched again', async () => {
  const { panel } = await room.open('keys')
  const before = signingKid()
  await panel.getByRole('button', { name: 'Rotate the signing key' }).click()
  await until('another key signs', async () => signingKid() !== before)
  await panel.getByRole('button', { name: `Remove key ${before}` }).click()
  await panel.locator(`li[data-kid="${before}"]`).waitFor({ state: 'detached' })

  expect(room.state().core.keys.map(({ kid }) => kid)).not.toContain(before)
  await room.call({ receiver: 'orders-2' })
  await until('the receiver has dropped it', async () => {
    const { keySet } = room.state().receivers[1] ?? {}
    return keySet !== undefined && !keySet.keys.includes(before)
  })
})

it('tells when tokens with unknown keys may cause no more fetches', async () => {
  const { panel } = await room.open('keys')
  for (let times = 0; times < 4; times += 1) {
    await room.act('rotate-key', {})
    await room.call({ receiver: 'orders-2' })
  }
  await panel
    .locator('[data-receiver="orders-2"]')
    .getByText(/used up .+ ago/)
    .waitFor()
})

it('slows the core, for which a token by a new key waits', async () => {
  const { panel } = await room.open('keys')
  await panel.getByLabel('The core’s answer takes').selectOption('500')
  await panel.getByText('is slow: its key set takes 0.5 s').waitFor()
  // A refresh that is under way brings the new key sooner.
  await until('no refresh is near', async () => {
    const { ageSeconds = Number.POSITIVE_INFINITY } = room.state().receivers[0]?.keySet ?? {}
    return ageSeconds < REFRESHED_A_MOMENT_AGO_SECONDS
  })
  await room.act('rotate-key', {})
  const { answer, operator } = await room.call({})
  expect(operator.outcome).toBe('accepted')
  expect(answer.milliseconds).toBeGreaterThan(450)
  await panel.getByLabel('The core’s answer takes').selectOption('0')
  await panel.locator('[data-core="up"]').getByText('is up').waitFor()
  expect(room.state().core.slowByMs).toBe(0)
})

it('takes the core down, which the line of the key set shows, and up again', async () => {
  const { panel } = await room.open('keys')
  const figure = panel.locator('[data-receiver="orders-1"]')
  await figure.locator('.badge', { hasText: 'fresh' }).waitFor()
  await panel.getByRole('button', { name: 'Stop the core' }).click()
  await panel.locator('[data-core="down"]').waitFor()

  expect(statusOf(await room.call({})), 'by a key that it knows').toBe(200)
  await figure.locator('.badge', { hasText: 'stale' }).waitFor()
  await figure.locator('.keys-stretch-stale').last().waitFor()
  expect(await figure.getByRole('img').getAttribute('aria-label')).toMatch(
    /^Key set of orders-1\. Of the last five minutes: fresh .+, stale /,
  )
  expect(room.state().receivers[0]?.keySet).toMatchObject({ state: 'stale' })
  await figure.getByText(/^[1-9]\d* \(\w+\)$/).waitFor()
  await room.act('rotate-key', {})
  expect(statusOf(await room.call({})), 'by a key that nobody can fetch').toBe(503)
  await until('it has been stale for longer than a refresh takes', async () => {
    const last = room.state().receivers[0]?.keySetLine.at(-1)
    return last?.state === 'stale' && Date.now() - last.since > MAX_REFRESH_MS
  })

  await panel.getByRole('button', { name: 'Start the core' }).click()
  await figure.locator('.badge', { hasText: 'fresh' }).waitFor()
  expect(await figure.locator('.keys-stretch').count()).toBeGreaterThanOrEqual(3)
})
