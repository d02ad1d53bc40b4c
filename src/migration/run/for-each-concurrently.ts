/**
 * Calls `work` for each item, at most `limit` at a time, in no guaranteed order. After a failure no
 * further item is started; once the calls in progress have ended, it rejects with the first failure.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = generatorOf(items)
  const faults: unknown[] = []
  const runWorker = async (): Promise<void> => {
    while (faults.length === 0) {
      const next = await iterator.next()
      if (next.done === true) return
      await work(next.value)
    }
  }
  const workers = Array.from({ length: limit }, () =>
    runWorker().catch((fault: unknown) => {
      faults.push(fault)
    }),
  )
  await Promise.all(workers)
  if (faults.length === 0) return
  await iterator.return()
  throw faults[0]
}

/** Number of results that are written together. */
const GROUP_SIZE = 200

/**
 * Calls `work` for each item like `forEachConcurrently`, and passes its results to `write` in groups. Leaves out
 * results of `undefined`. If an item fails, the results until then are still written.
 */
export async function inGroups<Item, Result>(
  items: AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<Result | undefined>,
  write: (results: readonly Result[]) => Promise<void>,
): Promise<void> {
  let results: Result[] = []
  const flush = async (): Promise<void> => {
    const written = results
    results = []
    if (written.length > 0) await write(written)
  }
  try {
    await forEachConcurrently(items, limit, async (item) => {
      const result = await work(item)
      if (result !== undefined) results.push(result)
      if (results.length >= GROUP_SIZE) await flush()
    })
  } finally {
    await flush()
  }
}

/** Returns a generator of the items, because a generator queues concurrent calls of `next`. */
async function* generatorOf<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  yield* items
}
