import { randomUUID } from 'node:crypto'
import { afterAll } from 'vitest'
import { Refused } from '../../../src/testing/core/mint.js'
import { startIdentityCore } from '../../support/core/identity-core/identity-core.js'
import { CutOff, type Gate } from '../../support/core/identity-core/router.js'
import { knowSecret } from '../../support/secret-search/index.js'

export const API_KEY = `key-${randomUUID()}`
knowSecret('an API key', API_KEY)

/** A stand-in core behind a gate, at which a test delays and refuses imports, and cuts connections. */
export interface GatedCore {
  readonly url: string
  readonly port: number
  /** Bodies of direct imports, in the order in which they came. */
  readonly imports: readonly Readonly<Record<string, unknown>>[]
  /** Asked before an import; what it returns instead of `undefined` is the error of a 400. */
  beforeImport: () => Promise<string | undefined>
  /** Called when an account is there and its reply is not sent yet. */
  afterCommit: () => void
  /** Whether it breaks each connection instead of answering. */
  isDead: boolean
  /** The external ids of all accounts. */
  commits(): string[]
  /** What the accounts of this external id sign in with. */
  emailsOf(externalUserId: string): (string | undefined)[]
  /** Gives an account another login in the place of its own. */
  changeEmail(externalUserId: string, email: string): void
  close(): Promise<void>
}

const opened: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(opened.map(({ close }) => close())))

/** Closes it once the tests of the file have ended, if they have not. */
export function closedAtEnd<Closable extends { close(): Promise<void> }>(one: Closable): Closable {
  opened.push(one)
  return one
}

export async function openGatedCore(): Promise<GatedCore> {
  const imports: Readonly<Record<string, unknown>>[] = []
  const state = {
    beforeImport: async (): Promise<string | undefined> => undefined,
    afterCommit: (): void => {},
    isDead: false,
  }
  const gate: Gate = async ({ path, body }, answer) => {
    if (state.isDead) throw new CutOff()
    if (path !== '/bulk-import/import') return answer()
    imports.push(body)
    const error = await state.beforeImport()
    if (state.isDead) throw new CutOff()
    if (error !== undefined) throw new Refused(400, JSON.stringify({ errors: [error] }))
    const answered = await answer()
    state.afterCommit()
    if (state.isDead) throw new CutOff()
    return answered
  }
  const core = await startIdentityCore({
    apiKey: API_KEY,
    tenants: ['tenant-a', 'tenant-b', 'tenant-c'],
    roles: ['admin'],
    job: { intervalMs: 'off' },
    gate,
  })
  const { tables, url } = core
  const accountOf = (externalUserId: string) =>
    tables.accounts.get(tables.accountOf.get(tables.coreIds.get(externalUserId) ?? '') ?? '')
  const own = {
    url,
    port: Number(new URL(url).port),
    imports,
    commits: () => [...tables.accounts.keys()].map((id) => tables.externalIds.get(id) ?? id),
    emailsOf: (externalUserId: string) =>
      accountOf(externalUserId)?.methods.map(({ email }) => email) ?? [],
    changeEmail(externalUserId: string, email: string) {
      const account = accountOf(externalUserId)
      if (account === undefined) throw new Error('no account')
      const methods = account.methods.map((method) => ({ ...method, email }))
      tables.change({ accounts: [{ ...account, methods }] })
    },
    close: core.close,
  }
  return closedAtEnd(Object.assign(state, own))
}
