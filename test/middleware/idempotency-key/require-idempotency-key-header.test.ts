import { expect, it } from 'vitest'
import { type Bench, describeReceivers } from '../../support/receiver/each-receiver.js'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { type Call, call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'

/** A receiver whose answers differ from run to run. */
const start = (
  bench: Bench,
  { handler, options, ...more }: Partial<OrdersOptions> = {},
): Promise<Receiver> =>
  bench.start(
    handler ??
      ((req, res) => void res.status(201).json({ key: req.idempotency?.key, run: newKey() })),
    options,
    more,
  )

/** Whether the second request got the result of the first. */
async function isReplayed({ port }: Receiver, first: Call, second: Call): Promise<boolean> {
  expect((await call(port, first)).status).toBe(201)
  const answer = await call(port, second)
  expect(answer.status).toBe(201)
  return answer.headers['idempotent-replayed'] !== undefined
}

describeReceivers('The header Idempotency-Key', (bench) => {
  it('refuses a request without a key, and the store is not asked', async () => {
    const receiver = await start(bench)
    bench.store.fail('reserve')
    const answer = await call(receiver.port)
    expect(answer).toMatchObject({
      status: 400,
      problem: 'idempotency-key-missing',
      headers: { 'content-type': ['application/problem+json'], 'cache-control': ['no-store'] },
    })
    expect(JSON.parse(answer.body.toString())).toMatchObject({ status: 400 })
    expect(receiver.handled).toBe(0)
  })

  it.each([
    ['empty', ''],
    ['256 characters', 'k'.repeat(256)],
    ['256 characters, quoted', `"${'k'.repeat(256)}"`],
    ['256 characters after unescaping', `"${'\\"'.repeat(256)}"`],
    ['a blank inside', 'a b'],
    ['a blank inside, quoted', '"a b"'],
    ['an empty string', '""'],
    ['an open string', '"abc'],
    ['a lone quote', '"'],
    ['a quote inside', '"a"b"'],
    ['a parameter', '"a";p=1'],
    ['a list of strings', '"a", "b"'],
    ['an unknown escape', '"\\n"'],
    ['beyond ASCII', 'caf\xe9'],
    ['a tab inside', 'a\tb'],
    ['sent twice', ['a', 'a'] as unknown as string],
  ])('refuses a malformed key: %s', async (_name, key) => {
    const receiver = await start(bench)
    const answer = await call(receiver.port, { key })
    expect(answer).toMatchObject({
      status: 400,
      problem: 'idempotency-key-invalid',
      headers: { 'cache-control': ['no-store'] },
    })
    expect(receiver.handled).toBe(0)
  })

  it.each([
    ['k', '"k"'],
    ['x'.repeat(255), `"${'x'.repeat(255)}"`],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ['a,b', '"a,b"'],
    ['__proto__', '"__proto__"'],
    ['"'.repeat(255).replace('"', 'a'), `"a${'\\"'.repeat(254)}"`],
  ])('takes a key bare or as a string for the same: %s', async (bare, quoted) => {
    const receiver = await start(bench, { options: { operation: newKey() } })
    expect(await isReplayed(receiver, { key: bare }, { key: quoted })).toBe(true)
    const answer = await call(receiver.port, { key: bare })
    expect(JSON.parse(answer.body.toString()).key).toBe(bare)
    expect(receiver.handled).toBe(1)
  })

  it('tells keys apart by case', async () => {
    const receiver = await start(bench, { options: { operation: newKey() } })
    expect(await isReplayed(receiver, { key: 'K' }, { key: 'k' })).toBe(false)
  })
})
