import { readFile, rm } from 'node:fs/promises'

/** What V8 itself makes and drops: compiled code, its feedback, and the shapes of objects. */
const OF_V8 = new Set(['code', 'hidden', 'object shape'])

/** The bytes of all objects in a heap snapshot. Removes the file. */
export async function objectBytes(file: string): Promise<number> {
  const { snapshot, nodes } = JSON.parse(await readFile(file, 'utf8'))
  await rm(file)
  const { node_fields: fields, node_types: types } = snapshot.meta
  const typeAt = fields.indexOf('type')
  const sizeAt = fields.indexOf('self_size')
  let bytes = 0
  for (let node = 0; node < nodes.length; node += fields.length) {
    if (!OF_V8.has(types[typeAt][nodes[node + typeAt]])) bytes += nodes[node + sizeAt]
  }
  return bytes
}

export interface HeapSample {
  /** Hours from the start. */
  readonly at: number
  /** Bytes. */
  readonly heap: number
}

/** The slope of the least-squares line through the heap of the second half: % per hour, and its standard error. */
export function heapSlope(samples: readonly HeapSample[]): {
  percent: number
  error: number
} {
  const half = samples.slice(Math.floor(samples.length / 2))
  const mean = (read: (sample: HeapSample) => number): number =>
    half.reduce((sum, sample) => sum + read(sample), 0) / half.length
  const [at, heap] = [mean((sample) => sample.at), mean((sample) => sample.heap)]
  const spread = mean((sample) => (sample.at - at) ** 2)
  const slope = mean((sample) => (sample.at - at) * (sample.heap - heap)) / spread
  const rest = mean((sample) => (sample.heap - heap - slope * (sample.at - at)) ** 2)
  const error = Math.sqrt(rest / spread / (half.length - 2))
  return { percent: (100 * slope) / heap, error: (100 * error) / heap }
}
