/**
 * Calls `work` for each item, at most `limit` at a time, in no guaranteed order. After a failure no
 * further item is started; once the calls in progress have ended, it rejects with the first failure.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = taken(items)
  const faults: unknown[] = []
  const take = async (): Promise<void> => {
    while (faults.length === 0) {
      const next = await iterator.next()
      if (next.done === true) return
      await work(next.value)
    }
  }
  const workers = Array.from({ length: limit }, () =>
    take().catch((fault: unknown) => {
      faults.push(fault)
    }),
  )
  await Promise.all(workers)
  if (faults.length === 0) return
  await iterator.return()
  throw faults[0]
}

/** A generator queues concurrent calls of `next`. */
async function* taken<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  yield* items
}
