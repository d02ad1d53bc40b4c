import pg from 'pg'
import { describe, expect, it } from 'vitest'
import {
  guardTransaction,
  isTransactionCommand,
  TransactionEndedError,
} from '../../../../src/stores/postgres/guard.js'

class Secretive {
  #count = 0
  add(): this {
    this.#count++
    return this
  }
  get count(): number {
    return this.#count
  }
  async nested<T>(work: (inner: Secretive) => Promise<T>): Promise<T> {
    const result = await work(new Secretive())
    this.#count += 100
    return result
  }
  isMe(other: unknown): boolean {
    return other === this
  }
  areMe(others: readonly unknown[]): boolean {
    return others.every((other) => other === this)
  }
  rows(): Promise<{ at: Date }[]> {
    return Promise.resolve([{ at: new Date(0) }])
  }
  lazy(): PromiseLike<number> {
    return Lazy.of(() => this.#count++)
  }
}

/** Sends when it is awaited, as postgres.js does. */
class Lazy extends Promise<number> {
  static of(send: () => number): Lazy {
    const lazy = new Lazy(() => {})
    // biome-ignore lint/suspicious/noThenProperty: what lazy queries do
    lazy.then = ((resolve: (value: number) => void) => resolve(send())) as Lazy['then']
    return lazy
  }
}

describe('a guarded transaction', () => {
  it('does what the object does, its private members included', async () => {
    const { transaction: handle } = guardTransaction(new Secretive())
    expect(handle.add().add().count).toBe(2)
    expect(handle.add()).toBe(handle)
    expect(handle).toBeInstanceOf(Secretive)
    expect(handle.constructor).toBe(Secretive)
    expect(handle.isMe(handle)).toBe(true)
    expect(handle.areMe([handle, handle])).toBe(true)
    const [row] = await handle.rows()
    expect(row?.at.getTime()).toBe(0)
    expect(await handle.lazy()).toBe(3)
  })

  it('fails, with all that was made from it, after it is revoked', async () => {
    const raw = new Secretive()
    const { transaction: handle, revoke } = guardTransaction(raw)
    const lazy = handle.lazy()
    const { add } = handle
    let inner: Secretive | undefined
    await handle.nested(async (given) => {
      inner = given
    })
    revoke()
    const ended = [lazy, handle.lazy(), add(), inner?.add(), inner?.rows()]
    for (const each of ended) {
      await expect(Promise.resolve(each)).rejects.toThrow(TransactionEndedError)
    }
    expect(() => handle.add().add()).toThrow(TransactionEndedError)
    expect(raw.count).toBe(100)
  })

  it('gives frozen members and lists as they are', () => {
    const frozen = Object.freeze({ inner: new Secretive(), list: [1] })
    const { transaction: handle } = guardTransaction(frozen)
    expect(handle.inner.add().count).toBe(1)
    expect(handle.list).toBe(frozen.list)
    expect(Object.keys(handle)).toEqual(['inner', 'list'])
  })

  it.each([
    'COMMIT',
    ' ;; rollback',
    '-- done\rcommit',
    '-- done\n/* a /* nested */ one */ Abort',
    'begin',
    'start transaction',
    'prepare transaction $$x$$',
    "rollback prepared 'mine'",
    'end;',
    'rollback and chain',
    'rollback /* to savepoint x */',
  ])('refuses %j', async (text) => {
    expect(isTransactionCommand(text)).toBe(true)
    const { transaction: handle } = guardTransaction(new pg.Client())
    await expect(handle.query(text)).rejects.toThrow(/neither begins/)
    await expect(handle.query({ text })).rejects.toThrow(/neither begins/)
  })

  it.each([
    'savepoint commit',
    'rollback to savepoint s',
    'ROLLBACK WORK TO s',
    'release savepoint s',
    'select 1 as commit',
    'prepare commit as select 1',
    '',
    '/* commit',
    '"commit"',
  ])('lets %j pass', (text) => {
    expect(isTransactionCommand(text)).toBe(false)
  })
})
