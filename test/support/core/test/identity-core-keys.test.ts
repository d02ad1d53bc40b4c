import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, onTestFinished } from 'vitest'
import { API_KEY, fetchKeySet, mintedBy } from '../core-client.js'
import { decodeToken } from '../decode-token.js'
import {
  type IdentityCore,
  type IdentityCoreOptions,
  startIdentityCore,
} from '../identity-core/identity-core.js'

const SECOND = 1000
const HOUR = 3600 * SECOND
const WEEK = 168 * HOUR
const START = 1_800_000_000_000

let now = START
const started: IdentityCore[] = []

async function start(options: Partial<IdentityCoreOptions> = {}): Promise<IdentityCore> {
  now = options.keysFile === undefined ? START : now
  const core = await startIdentityCore({ apiKey: API_KEY, clock: () => now, ...options })
  started.push(core)
  return core
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((core) => core.close()))
})

async function signingKid(core: IdentityCore): Promise<string> {
  return JSON.parse(decodeToken(await mintedBy(core.url)).header).kid
}

async function dynamicKids(core: IdentityCore): Promise<string[]> {
  return (await fetchKeySet(core.url)).kids.filter((kid) => kid.startsWith('d-'))
}

async function newKeysFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'identity-core-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return join(directory, 'keys.json')
}

it('rotates weekly: a minute early, signing a minute later, published for two hours more', async () => {
  const core = await start()
  const first = `d-${START}`
  const maxAge = async () => (await fetchKeySet(core.url)).cacheControl

  expect(await maxAge()).toBe(`max-age=${(WEEK - 60 * SECOND) / SECOND}, must-revalidate`)
  now = START + WEEK - 62.5 * SECOND
  expect(await maxAge()).toBe('max-age=2, must-revalidate')
  now = START + WEEK - 60 * SECOND
  expect(await maxAge()).toBe('max-age=1, must-revalidate')
  expect(await dynamicKids(core)).toEqual([first])

  now += 1
  const second = `d-${now}`
  expect(await dynamicKids(core)).toEqual([second, first])
  expect(await signingKid(core)).toBe(first)
  expect(await maxAge()).toBe('max-age=1, must-revalidate')
  now = START + WEEK - 1
  expect(await signingKid(core)).toBe(first)
  expect(await maxAge()).toBe('max-age=1, must-revalidate')
  now = START + WEEK + 1
  expect(await signingKid(core)).toBe(second)
  expect(await maxAge()).toBe(`max-age=${(WEEK - 120 * SECOND) / SECOND}, must-revalidate`)

  now = START + WEEK + 2 * HOUR
  expect(await dynamicKids(core)).toEqual([second, first])
  now += 1
  expect(await dynamicKids(core)).toEqual([second])
})

it('makes one key when many requests find it due', async () => {
  const core = await start()
  now += WEEK
  await Promise.all([mintedBy(core.url), fetchKeySet(core.url), fetchKeySet(core.url)])
  expect(await dynamicKids(core)).toHaveLength(2)
})

it('signs with a new key at once when nobody came during the overlap', async () => {
  const core = await start()
  now += 2 * WEEK
  expect(await signingKid(core)).toBe(`d-${now}`)
})

it('scales the overlap and the retention down for an interval of seconds', async () => {
  const core = await start({ rotationSeconds: 8 })
  expect((await fetchKeySet(core.url)).cacheControl).toBe('max-age=6, must-revalidate')
  now = START + 6 * SECOND + 1
  expect(await signingKid(core)).toBe(`d-${START}`)
  expect(await dynamicKids(core)).toEqual([`d-${now}`, `d-${START}`])
  now = START + 8 * SECOND + 1
  expect(await signingKid(core)).toBe(`d-${START + 6 * SECOND + 1}`)
  now = START + 13 * 8 * SECOND + 1
  expect(await dynamicKids(core)).not.toContain(`d-${START}`)
})

it('rotates by hand: the new key signs at once, the old stays published', async () => {
  const core = await start()
  const kids = [await core.rotate(), await core.rotate()]
  expect(await signingKid(core)).toBe(kids[1])
  expect(await dynamicKids(core)).toEqual([kids[1], kids[0], `d-${START}`])
})

it('withdraws a key for good, and puts another in its place', async () => {
  const core = await start()
  expect(await core.withdraw('d-0')).toBe(false)
  now += 5
  expect(await core.withdraw(`d-${START}`)).toBe(true)
  expect(await signingKid(core)).toBe(`d-${now}`)
  expect(await dynamicKids(core)).toEqual([`d-${now}`])
})

it('keeps its keys on disk across restarts, for the owner only', async () => {
  const keysFile = await newKeysFile()
  const first = await start({ keysFile })
  await first.rotate()
  const { keys } = await fetchKeySet(first.url)
  await first.close()

  const second = await start({ keysFile })
  expect((await fetchKeySet(second.url)).keys).toEqual(keys)
  expect((await stat(keysFile)).mode & 0o777).toBe(0o600)
  expect(await readdir(join(keysFile, '..'))).toEqual(['keys.json'])
})

it.each([
  ['cut short', (text: string) => text.slice(0, -100)],
  ['empty', () => ''],
  ['of another shape', () => '{"version":2,"keys":[]}'],
  ['without a real key', (text: string) => text.replaceAll('MII', 'AAA')],
])('refuses to start with a keys file that is %s, without quoting it', async (_, damage) => {
  const keysFile = await newKeysFile()
  await writeFile(keysFile, damage(await intactKeysFile()))
  const failure = await start({ keysFile }).catch((error: Error) => error)
  expect(failure).toMatchObject({
    name: 'StartError',
    message: `the keys file ${keysFile} is damaged; restore it, or move it away to start with new keys`,
  })
})

it('says why a keys file cannot be read or written', async () => {
  const directory = join(await newKeysFile(), '..')
  await expect(start({ keysFile: directory })).rejects.toThrow(/cannot be read \(EISDIR\)$/)
  const below = join(directory, 'file', 'keys.json')
  await writeFile(join(directory, 'file'), '')
  await expect(start({ keysFile: below })).rejects.toThrow(/cannot be (read|written) \(ENOTDIR\)$/)
})

it('refuses an empty API key', async () => {
  await expect(start({ apiKey: '' })).rejects.toThrow(TypeError)
})

let intact: string | undefined
async function intactKeysFile(): Promise<string> {
  if (intact === undefined) {
    const keysFile = await newKeysFile()
    await start({ keysFile })
    intact = await readFile(keysFile, 'utf8')
  }
  return intact
}
