/** Lets so many pieces of work run at once, and the others in the order in which they came. */
export interface Turns {
  run<T>(work: () => Promise<T>): Promise<T>
}

export function createTurns(mostAtOnce: number): Turns {
  const waiting: (() => void)[] = []
  let running = 0

  function next(): void {
    const begin = waiting.shift()
    if (begin === undefined) running -= 1
    else begin()
  }

  return {
    async run(work) {
      if (running < mostAtOnce) running += 1
      else await new Promise<void>((begin) => waiting.push(begin))
      try {
        return await work()
      } finally {
        next()
      }
    },
  }
}
