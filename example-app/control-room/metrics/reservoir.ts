/** Values of one second: all of them up to a limit, beyond it a fair sample of that many. */
export interface Reservoir {
  add(value: number): void
  values(): readonly number[]
}

/** Beyond what the room sends in a second, several times over: its percentiles are exact. */
const MAX_VALUES = 4096

/** Algorithm R: each value is as likely as any other to be in the sample. */
export function createReservoir(random: () => number = Math.random): Reservoir {
  const values: number[] = []
  let seen = 0
  return {
    add(value) {
      seen += 1
      if (values.length < MAX_VALUES) {
        values.push(value)
        return
      }
      const place = Math.floor(random() * seen)
      if (place < MAX_VALUES) values[place] = value
    },
    values: () => values,
  }
}
