import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { until } from '../../support/until.js'
import { openGatedCore } from './gated-core.js'
import { bodyAbout, type Endpoint, legacyUser, newId, openEndpoint, PASSWORD_LOGIN } from './kit.js'

/** For what comes before the part that hangs, also on a busy machine. */
const LONG_ENOUGH_MS = 3000
const PEOPLE = 50
const CALLS_EACH = 12
const AT_ONCE = 40
const COMMITS_BETWEEN_DEATHS = 5
const RETRY_PAUSE_MS = 500
const MAX_PAUSE_MS = 10
const RETRIES = 100

const core = await openGatedCore()

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

async function openTwo(small: typeof core): Promise<Endpoint[]> {
  return Promise.all(EXPRESS_MAJORS.map(({ express }) => openEndpoint(small, { express })))
}

/** Calls an instance for each id, `AT_ONCE` at a time, and returns the statuses. */
async function callAll(
  ids: readonly string[],
  call: (id: string, index: number) => Promise<number>,
): Promise<number[]> {
  const statuses: number[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < ids.length; index = next++) {
      statuses[index] = await call(ids[index] as string, index)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return statuses
}

/** Calls the instances in turn until one does not answer 503, as a hook does; counts what it was refused. */
async function callUntilDecided(
  instances: readonly Endpoint[],
  { id, index, count }: { id: string; index: number; count?: () => void },
): Promise<number> {
  for (let retry = 0; retry < RETRIES; retry += 1) {
    const instance = instances[(index + retry) % instances.length] as Endpoint
    const { status, text } = await instance.post(bodyAbout(id))
    if (status === 200) expect(text).toBe(JSON.stringify({ status: 'OK', userId: id }))
    if (status !== 503) return status
    count?.()
    await pause(RETRY_PAUSE_MS)
  }
  return 503
}

/** Every call of every person, those of one person close together. */
const callsOf = (people: readonly string[]): string[] =>
  people.flatMap((id) => Array.from({ length: CALLS_EACH }, () => id))

const TITLE = `${PEOPLE} people, ${CALLS_EACH} calls each, ${AT_ONCE} at once, at two instances`

// Thousands of requests, on a machine that may be busy.
describe(TITLE, { timeout: 240_000 }, () => {
  it('get one account each, and nobody else gets one of theirs', async () => {
    const small = await openGatedCore()
    // A database checks what is unique when it commits.
    small.beforeImport = () => pause(Math.random() * MAX_PAUSE_MS).then(() => undefined)
    const instances = await openTwo(small)
    const people = Array.from({ length: PEOPLE }, newId)
    let unavailable = 0
    const count = () => (unavailable += 1)
    const statuses = await callAll(callsOf(people), (id, index) =>
      callUntilDecided(instances, { id, index, count }),
    )
    // A core closes its connection after each conflict, and a busy machine breaks one now and then.
    expect(unavailable).toBeLessThan(statuses.length / 100)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(small.commits().toSorted()).toEqual(people.toSorted())
    expect(small.imports.length).toBeGreaterThan(PEOPLE)
    const created = instances
      .flatMap(({ decisions }) => decisions.filter(({ reason }) => reason === 'created'))
      .map(({ externalUserId }) => externalUserId)
    expect(new Set(created).size).toBe(created.length)
    // Of an account whose answer was lost, the retry finds that it exists.
    expect(created.length + unavailable).toBeGreaterThanOrEqual(PEOPLE)
  })

  it('get one account each from a core that dies in the middle: 503, and the retry finds it', async () => {
    const small = await openGatedCore()
    let commits = 0
    small.beforeImport = () => pause(Math.random() * MAX_PAUSE_MS).then(() => undefined)
    small.afterCommit = () => {
      commits += 1
      small.isDead ||= commits % COMMITS_BETWEEN_DEATHS === 0
    }
    const instances = await openTwo(small)
    const people = Array.from({ length: PEOPLE }, newId)
    let unavailable = 0
    // Dead until a caller is refused: whose account was just committed gets neither a reply nor a look-up.
    const count = () => {
      unavailable += 1
      small.isDead = false
    }
    const statuses = await callAll(callsOf(people), (id, index) =>
      callUntilDecided(instances, { id, index, count }),
    )
    expect(unavailable).toBeGreaterThan(0)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(small.commits().toSorted()).toEqual(people.toSorted())
  })

  it('who share a login get one account, and the others the 403', async () => {
    const small = await openGatedCore()
    small.beforeImport = () => pause(Math.random() * MAX_PAUSE_MS).then(() => undefined)
    const loadUser = ({ externalUserId }: { externalUserId: string }) => {
      const [login] = legacyUser(externalUserId).identities
      return { identities: [{ ...login, email: 'shared@example.com' }] as never }
    }
    const endpoint = await openEndpoint(small, { options: { loadUser } })
    const people = callsOf([newId(), newId(), newId()])
    const statuses = await callAll(people, (id, index) =>
      callUntilDecided([endpoint], { id, index }),
    )
    expect(small.commits()).toHaveLength(1)
    expect(statuses.filter((status) => status === 200)).toHaveLength(CALLS_EACH)
    expect(statuses.filter((status) => status === 403)).toHaveLength(2 * CALLS_EACH)
  })
})

describe.concurrent('an import', () => {
  it('that has begun goes on when the time is over, and the retry finds it', async () => {
    const slow = await openGatedCore()
    const endpoint = await openEndpoint(slow, { options: { timeoutMs: LONG_ENOUGH_MS } })
    let letGo = (): void => {}
    const held = new Promise<undefined>((resolve) => (letGo = () => resolve(undefined)))
    slow.beforeImport = () => held
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(503)
    letGo()
    await until('the user is imported', async () => slow.commits().length === 1)
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(slow.imports).toHaveLength(1)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual(['outcome_unknown', 'existing'])
  })

  it('that was refused or failed is tried again', async () => {
    const small = await openGatedCore()
    const endpoint = await openEndpoint(small)
    const id = newId()
    small.beforeImport = async () => 'E003: A user with email x already exists in emailpassword.'
    expect((await endpoint.post(bodyAbout(id))).status).toBe(403)
    small.beforeImport = async () => 'org.postgresql.util.PSQLException: connection lost'
    expect((await endpoint.post(bodyAbout(id))).status).toBe(503)
    small.beforeImport = async () => undefined
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
  })

  it('is not repeated for another login of the user', async () => {
    const loadUser = ({ externalUserId }: { externalUserId: string }) => ({
      identities: [
        ...legacyUser(externalUserId).identities.map((login) => ({ ...login, isPrimary: true })),
        {
          ...PASSWORD_LOGIN,
          userId: 'later',
          email: `later-${externalUserId}@example.com`,
          plainTextPassword: 'a password of nobody',
        },
      ],
    })
    const endpoint = await openEndpoint(core, { options: { loadUser } })
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    const more = { identities: [{ ...PASSWORD_LOGIN, userId: 'later' }] }
    expect((await endpoint.post(bodyAbout(id, more))).status).toBe(200)
    expect(core.imports).toHaveLength(1)
  })
})
