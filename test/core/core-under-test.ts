import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'
import type { CoreVersion } from '../support/core/identity-core/interface-version.js'
import { runJobToEnd, type StandInCore, startStandInCore } from '../support/core/stand-in-core.js'
import { ALL_FEATURES } from '../support/migration/bad-users/index.js'

export interface Answer {
  readonly status: number
  readonly type: string | null
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: what is compared with what a test expects.
  readonly json: any
}

export interface CoreUnderTest {
  readonly url: string
  /** By the newest version of the interface that it offers. */
  readonly version: CoreVersion
  /** Whether it is a core that was given, not a stand-in: others use it too, and its job is slow. */
  readonly isGiven: boolean
  /** Runs the job of a stand-in; that of a given core runs when its time has come. */
  runJob(): Promise<void>
  /** Of the licence. */
  readonly features: ReadonlySet<string>
  /** Does it while a stand-in has no feature; `undefined` where a given core has some. */
  readonly withoutFeatures: (<R>(work: () => Promise<R>) => Promise<R>) | undefined
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body: unknown): Promise<Answer>
  put(path: string, body: unknown): Promise<Answer>
  /** Makes an account, which is removed at the end. */
  importUser(user: {
    readonly externalUserId: string
    readonly [member: string]: unknown
  }): Promise<Answer>
  /** Stages users; rows and accounts are removed at the end. */
  stage(users: readonly object[]): Promise<Answer>
  makeRole(role: string): Promise<string>
  /** Needs the feature multi_tenancy. */
  makeTenant(tenantId: string): Promise<string>
  /** Removes what was made, and closes a stand-in. */
  close(): Promise<void>
}

/** A job that a given core starts every five minutes may take this long to be through. */
export const JOB_TIMEOUT_MS = 900_000

/** A name that nobody else has. */
export function uniqueName(kind: string): string {
  return `esa-${kind}-${randomUUID().slice(0, 13)}`
}

/** Makes each row of the tests a chunk of its own: a conflict keeps back all of its chunk. */
const PARALLELISM = 32

/** The core that the project `core` is told of, or a stand-in. */
export async function openCore(): Promise<CoreUnderTest> {
  const given = inject('givenCore')
  if (given !== undefined)
    return coreAt(given, { isGiven: true, runJob: nothing, setFeatures: undefined, close: nothing })
  const core = await startStandInCore({ job: { intervalMs: 'off', parallelism: PARALLELISM } })
  const { setFeatures, close } = core
  return coreAt(core, { isGiven: false, runJob: () => runJobToEnd(core), setFeatures, close })
}

interface Address {
  readonly url: string
  readonly apiKey: string
}

const nothing = async (): Promise<void> => undefined

interface Ending {
  readonly isGiven: boolean
  runJob(): Promise<void>
  readonly setFeatures: StandInCore['setFeatures'] | undefined
  close(): Promise<void>
}

async function coreAt(
  address: Address,
  { isGiven, runJob, setFeatures, close }: Ending,
): Promise<CoreUnderTest> {
  const { url } = address
  const call = caller(address)
  const made = { rows: new Set<string>(), users: new Set<string>() }
  const undo: (() => Promise<unknown>)[] = []
  const { versions } = (await call('GET', '/apiversion')).json
  const features = new Set<string>((await call('GET', '/ee/featureflag')).json.features)

  return {
    url,
    version: coreVersion(versions),
    isGiven,
    runJob,
    features,
    withoutFeatures: withoutFeatures(features, setFeatures),
    get: (path, headers) => call('GET', path, { headers }),
    post: (path, body) => call('POST', path, { body }),
    put: (path, body) => call('PUT', path, { body }),
    importUser(user) {
      made.users.add(user.externalUserId)
      return call('POST', '/bulk-import/import', { body: user })
    },
    async stage(users) {
      const answer = await call('POST', '/bulk-import/users', { body: { users } })
      for (const { userId, loginMethods } of stagedIn(answer)) {
        const ids = loginMethods.map((method) => method.userId)
        for (const id of [userId, ...ids]) made.users.add(id)
        for (const id of ids) made.rows.add(id)
      }
      return answer
    },
    async makeRole(role) {
      undo.push(() => call('POST', '/recipe/role/remove', { body: { role } }))
      await call('PUT', '/recipe/role', { body: { role } })
      return role
    },
    async makeTenant(tenantId) {
      undo.push(() => call('POST', '/recipe/multitenancy/tenant/remove', { body: { tenantId } }))
      await call('PUT', '/recipe/multitenancy/tenant/v2', { body: { tenantId } })
      return tenantId
    },
    async close() {
      const rows = [...made.rows]
      for (let start = 0; start < rows.length; start += 500) {
        const ids = rows.slice(start, start + 500)
        await call('POST', '/bulk-import/users/remove', { body: { ids } })
      }
      for (const userId of isGiven ? made.users : []) {
        await call('POST', '/user/remove', { body: { userId } })
      }
      for (const step of undo.reverse()) await step()
      await close()
    },
  }
}

function coreVersion(versions: readonly string[]): CoreVersion {
  if (versions.includes('5.5')) return '12.1'
  return versions.includes('5.4') ? '11.4' : '10.1'
}

function withoutFeatures(
  features: ReadonlySet<string>,
  setFeatures: Ending['setFeatures'],
): CoreUnderTest['withoutFeatures'] {
  if (setFeatures === undefined) return features.size === 0 ? (work) => work() : undefined
  return async (work) => {
    setFeatures([])
    try {
      return await work()
    } finally {
      setFeatures(ALL_FEATURES)
    }
  }
}

interface Staged {
  readonly userId: string
  readonly loginMethods: readonly { readonly userId: string }[]
}

function stagedIn({ status, json }: Answer): readonly Staged[] {
  return status === 200 ? (json.users ?? []) : []
}

interface Sent {
  readonly body?: unknown
  readonly headers?: Record<string, string> | undefined
}

/** A body that is a string is sent as it is. */
function caller({ url, apiKey }: Address) {
  return async (method: string, path: string, { body, headers }: Sent = {}): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { 'api-key': apiKey, ...headers },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const { status } = response
    return { status, type: response.headers.get('content-type'), text, json: parsed(text) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A query string. */
export function asking(parameters: Record<string, string>): string {
  return `?${new URLSearchParams(parameters)}`
}

/** The text of a refusal, as it goes over the wire. */
export function refusal(status: number, text: string) {
  return { status, type: 'text/html;charset=UTF-8', text: `${text}\n` }
}
