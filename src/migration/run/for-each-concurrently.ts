/**
 * Calls `work` for each item, at most `limit` at a time, in no guaranteed order. A failure ends the reading of items;
 * once the calls in progress have ended, it rejects with the failure.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const shared = generatorOf(items)
  const runWorker = async (): Promise<void> => {
    // Leaving the loop closes the generator, so the other workers end too.
    for await (const item of shared) await work(item)
  }
  const ends = await Promise.allSettled(Array.from({ length: limit }, runWorker))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
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
