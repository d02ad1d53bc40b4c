import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll } from 'vitest'
import { serve } from '../../support/receiver/serve.js'

interface Login {
  readonly recipeId: string
  readonly tenantIds?: readonly string[]
  readonly email?: string
  readonly phoneNumber?: string
  readonly thirdPartyId?: string
  readonly thirdPartyUserId?: string
}

interface Account {
  readonly coreId: string
  readonly externalUserId: string
  readonly loginMethods: readonly Login[]
}

/** An identity core of three operations, which answers as bulk-import's direct import does. */
export interface SmallCore {
  readonly url: string
  readonly port: number
  /** Bodies of direct imports, in the order in which they came. */
  readonly imports: readonly Readonly<Record<string, unknown>>[]
  readonly accounts: Map<string, Account>
  /** Asked before an import; what it returns instead of `undefined` is the error of a 400. */
  beforeImport: () => Promise<string | undefined>
  /** Called when an account is there and its reply is not sent yet. */
  afterCommit: () => void
  /** Whether it breaks each connection instead of answering. */
  isDead: boolean
  /** External ids, in the order in which their accounts were made. */
  readonly commits: readonly string[]
  close(): Promise<void>
}

const CONFLICTS = {
  emailpassword: ['E003', 'emailpassword'],
  passwordless: ['E006', 'passwordless'],
  thirdparty: ['E005', 'thirdparty'],
} as const

const opened: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(opened.map(({ close }) => close())))

/** Closes it once the tests of the file have ended, if they have not. */
export function closedAtEnd<Closable extends { close(): Promise<void> }>(one: Closable): Closable {
  opened.push(one)
  return one
}

export async function openSmallCore(): Promise<SmallCore> {
  const accounts = new Map<string, Account>()
  const imports: Record<string, unknown>[] = []
  const commits: string[] = []
  const core = {
    beforeImport: async (): Promise<string | undefined> => undefined,
    afterCommit: (): void => {},
    isDead: false,
  }

  async function importUser(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const user = JSON.parse(await text(request))
    imports.push(user)
    const error = (await core.beforeImport()) ?? conflictOf(user)
    if (core.isDead) {
      request.socket.destroy()
      return
    }
    if (error !== undefined) {
      response.writeHead(400, { 'content-type': 'text/html; charset=UTF-8' })
      response.end(`${JSON.stringify({ errors: [error] })}\n`)
      return
    }
    const account = { ...user, coreId: randomUUID() }
    accounts.set(user.externalUserId, account)
    commits.push(user.externalUserId)
    core.afterCommit()
    if (core.isDead) {
      request.socket.destroy()
      return
    }
    answer(response, { status: 'OK', user: shown(account) })
  }

  function conflictOf({ externalUserId, loginMethods }: Account): string | undefined {
    for (const login of loginMethods) {
      const held = [...accounts.values()].flatMap((account) => account.loginMethods)
      if (!held.some((other) => isSame(other, login))) continue
      const [code, recipe] = CONFLICTS[login.recipeId as keyof typeof CONFLICTS]
      return `${code}: A user with email ${login.email} already exists in ${recipe} loginMethod.`
    }
    return accounts.has(externalUserId)
      ? `E031: A user with externalId ${externalUserId} already exists`
      : undefined
  }

  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://core')
    const id = searchParams.get('userId') ?? ''
    if (core.isDead) {
      request.socket.destroy()
      return
    }
    if (pathname === '/bulk-import/import') {
      void importUser(request, response)
      return
    }
    const account = accounts.get(id) ?? [...accounts.values()].find(({ coreId }) => coreId === id)
    if (pathname === '/recipe/userid/map') {
      const mapped = accounts.get(id)
      answer(
        response,
        mapped
          ? { status: 'OK', superTokensUserId: mapped.coreId, externalUserId: id }
          : { status: 'UNKNOWN_MAPPING_ERROR' },
      )
      return
    }
    answer(
      response,
      account ? { status: 'OK', user: shown(account) } : { status: 'UNKNOWN_USER_ID_ERROR' },
    )
  }
  const served = closedAtEnd(await serve(listener))
  return Object.assign(core, {
    url: served.url,
    port: served.port,
    imports,
    commits,
    accounts,
    close: served.close,
  })
}

function answer(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=UTF-8' })
  response.end(`${JSON.stringify(body)}\n`)
}

const isSame = (one: Login, other: Login): boolean =>
  one.recipeId === other.recipeId &&
  one.email === other.email &&
  one.phoneNumber === other.phoneNumber &&
  one.thirdPartyUserId === other.thirdPartyUserId

function shown({ externalUserId, loginMethods }: Account): unknown {
  const methods = loginMethods.map((login) => ({
    recipeId: login.recipeId,
    recipeUserId: externalUserId,
    tenantIds: login.tenantIds ?? ['public'],
    verified: false,
    timeJoined: 1,
    ...(login.email !== undefined && { email: login.email }),
    ...(login.phoneNumber !== undefined && { phoneNumber: login.phoneNumber }),
    ...(login.thirdPartyId !== undefined && {
      thirdParty: { id: login.thirdPartyId, userId: login.thirdPartyUserId },
    }),
  }))
  return {
    id: externalUserId,
    isPrimaryUser: false,
    tenantIds: methods.flatMap(({ tenantIds }) => tenantIds),
    timeJoined: 1,
    emails: loginMethods.flatMap(({ email }) => email ?? []),
    phoneNumbers: loginMethods.flatMap(({ phoneNumber }) => phoneNumber ?? []),
    thirdParty: [],
    loginMethods: methods,
  }
}
