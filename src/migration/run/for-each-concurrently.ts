/**
 * Does the work for each item, so many at once, in no order. Rejects with the first fault, once the
 * work that was under way has ended; no further item is taken then.
 */
export async function forEachAtOnce<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  atOnce: number,
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
  const workers = Array.from({ length: atOnce }, () =>
    take().catch((fault: unknown) => {
      faults.push(fault)
    }),
  )
  await Promise.all(workers)
  if (faults.length === 0) return
  await iterator.return()
  throw faults[0]
}

/** A generator serves several callers one after the other. */
async function* taken<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  yield* items
}
