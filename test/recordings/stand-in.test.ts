import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CoreVersion } from '../support/core/identity-core/interface-version.js'
import { type StandInCore, startStandInCore } from '../support/core/stand-in-core.js'
import { prepare, replayJob, stageOne } from './job.js'
import { LEFT_OPEN } from './left-open.js'
import { type Json, masked, type Recording, readRecordings, replay } from './replay.js'

const FILES: readonly [name: string, version: CoreVersion][] = [
  ['differential-10.1.8', '10.1'],
  ['direct-10.1.8', '10.1'],
  ['direct-11.4.7', '11.4'],
  ['utf8-10.1.8', '10.1'],
  ['utf8-11.4.7', '11.4'],
  ['apps', '11.4'],
]

const leftOpen = new Set(LEFT_OPEN.flatMap(({ kinds }) => kinds))
const recordings = new Map(
  await Promise.all(FILES.map(async ([name]) => [name, await readRecordings(name)] as const)),
)

const cores = new Map<CoreVersion, StandInCore>()

beforeAll(async () => {
  for (const version of ['10.1', '11.4'] as const) {
    const tenants = [{ tenantId: 'acme', thirdPartyIds: [] }]
    const core = await startStandInCore({ version, tenants, roles: ['editor'] })
    cores.set(version, core)
    await stageOne(core)
  }
})
afterAll(() => Promise.all([...cores.values()].map((core) => core.close())))

describe.each(FILES)('%s', (name, version) => {
  const lines = recordings.get(name) ?? []
  const replies = new Map<Recording, Json>()

  beforeAll(async () => {
    const core = cores.get(version) as StandInCore
    // In the order of the file: look-ups come after what they look up.
    for (const line of lines) {
      await prepare(line, core)
      const reply = await (line.group === 'job' ? replayJob : replay)(line, core)
      replies.set(line, masked(reply, line.reply))
    }
  })

  const kinds = [...new Set(lines.map(({ kind }) => kind))]
  const linesOf = (kind: string) => lines.filter((line) => line.kind === kind)

  it.each(kinds.filter((kind) => !leftOpen.has(kind)))(
    'the stand-in replies as the core: %s',
    (kind) => {
      for (const line of linesOf(kind)) expect(replies.get(line)).toEqual(line.reply)
    },
  )

  it.each(kinds.filter((kind) => leftOpen.has(kind)))(
    'a difference that is listed is there: %s',
    (kind) => {
      const own = linesOf(kind)
      expect(own.map((line) => replies.get(line))).not.toEqual(own.map(({ reply }) => reply))
    },
  )
})

it('lists only differences that are recorded', () => {
  const known = new Set([...recordings.values()].flat().map(({ kind }) => kind))
  expect([...leftOpen].filter((kind) => !known.has(kind))).toEqual([])
})

it('says in the README of the stand-in why a difference stays', async () => {
  const readme = new URL('../support/core/identity-core/README.md', import.meta.url)
  const lines = (await readFile(readme, 'utf8')).split('\n')
  const reasons = lines.filter((line) => line.startsWith('- ')).map((line) => line.slice(2))
  expect(reasons).toEqual(LEFT_OPEN.map(({ reason }) => reason))
})
