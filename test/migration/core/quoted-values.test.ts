import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { importOne } from '../../../src/migration/account/import-one.js'
import type { CoreClient, RowStatus } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { logDecisions } from '../../../src/telemetry/log/log-decisions.js'
import { readFixtures } from '../../core/fixtures/fixture.js'
import { recordOutput } from '../../support/secret-search/index.js'
import { sourceOf } from '../run/support/people.js'
import { QUICK_TIMING } from '../run/support/quick-timing.js'

/** What the core has said in words, whatever it was about. */
async function readTexts(): Promise<string[]> {
  const texts = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value === 'string' && /[a-z] [a-z]/i.test(value)) texts.add(value)
    if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect)
  }
  for (const { scenes } of (await readFixtures()).values()) {
    for (const { steps } of scenes) for (const { reply } of steps) collect(reply)
  }
  return [...texts].filter((text) => !text.includes('<html'))
}

const TEXTS = await readTexts()

/** Where a text quotes something: a value of a statement, an address, an id, a name, or the recorder's placeholder. */
const QUOTATION =
  /(?<=\(')[^']*(?='\))|[^\s'(),]*(?:@|<run>|mwv)[^\s'(),]*|<[^>]+>|\+\d{7,}|(?<=Role |enantId: |TenantId |UserId |Object: )[^\s:]+/g

/** Lets the core quote these values, one after another. */
function quoting(text: string, values: readonly string[]): string {
  let next = 0
  const value = (): string => values[next++ % values.length] ?? ''
  const isSql = /Batch entry|INSERT/.test(text)
  const said = text.replace(QUOTATION, (quoted) => {
    if (quoted === '<login method>') return JSON.stringify({ all: values })
    return isSql ? value().replaceAll("'", "''") : value()
  })
  // What is not quoted in the text comes behind it.
  return next < values.length && /Batch entry|ERROR|Exception/.test(text)
    ? `${said}\n  Detail: Failing row contains (${values.join(', ')}).`
    : said
}

interface Marked {
  readonly user: ImportUser
  /** Its values, as a text may quote them. */
  readonly values: readonly string[]
  /** What no output may have. */
  readonly marks: readonly string[]
  /** The values that are told by their form, if they are quoted about another record. */
  readonly formed: readonly string[]
}

const letters = (alphabet: string) =>
  fc
    .array(fc.constantFrom(...alphabet), { minLength: 9, maxLength: 9 })
    .map((some) => some.join(''))
const latin = letters('qzxjkvw')
const arabic = letters('ابتثجحخدذرزسشصض')
const base32 = fc
  .array(fc.constantFrom(...'ABCDEFGH234567'), { minLength: 20, maxLength: 20 })
  .map((some) => some.join(''))
const digits = letters('123456789')

const hash = fc
  .tuple(fc.nat(2), latin)
  .map(
    ([kind, mark]) =>
      [
        `$2a$10$${mark}${mark}`,
        `$argon2id$v=19$m=65536,t=2,p=1$${mark}=$${mark}`,
        `$f_scrypt$${mark}==$${mark}$m=14$r=8$s=Bw==`,
      ][kind] as string,
  )
const ALGORITHMS: Readonly<Record<string, string>> = { $2: 'bcrypt', $a: 'argon2' }

const trap = fc
  .tuple(
    fc.constantFrom(
      ...[
        "'); DROP TABLE users; -- ",
        'was aborted: ERROR: ',
        'Detail: Key (a)=(',
        'Batch entry 0 ',
      ],
      ...["' has no tenantId ", 'duplicate key value violates unique constraint "', '}, {"a": "'],
      ...[' is too long. Max length is 128., ', 'E003: ', '[', '', 'VALUES (NULL), ("'],
    ),
    latin,
  )
  .map((parts) => parts.join(''))

const marked = fc
  .record({
    address: latin,
    local: arabic,
    number: digits,
    hash,
    key: base32,
    name: fc.tuple(arabic, arabic).map((names) => names.join(' ')),
    salary: digits,
    fragment: trap,
    password: trap,
    provider: trap,
    device: trap,
  })
  .map((drawn): Omit<Marked, 'user'> & { readonly user: Omit<ImportUser, 'externalUserId'> } => {
    const address = `${drawn.address}@Example.com`
    const email = `${drawn.local}@example.com`
    const phoneNumber = `+49 ${drawn.number}`
    const algorithm = ALGORITHMS[drawn.hash.slice(0, 2)] ?? 'firebase_scrypt'
    const user = {
      userMetadata: {
        name: drawn.name,
        pay: [{ salary: Number(drawn.salary) }],
        note: drawn.fragment,
      },
      userRoles: [{ role: 'editor', tenantIds: ['public'] }],
      totpDevices: [{ secretKey: drawn.key, deviceName: drawn.device }],
      loginMethods: [
        {
          recipeId: 'emailpassword' as const,
          email: address,
          passwordHash: drawn.hash,
          hashingAlgorithm: algorithm,
          isPrimary: true,
        },
        { recipeId: 'emailpassword' as const, email, plainTextPassword: drawn.password },
        { recipeId: 'passwordless' as const, phoneNumber },
        {
          recipeId: 'thirdparty' as const,
          email,
          thirdPartyId: 'google',
          thirdPartyUserId: drawn.provider,
        },
      ],
    }
    const number = phoneNumber.replaceAll(' ', '')
    const formed = [address.toLowerCase(), number, drawn.hash, email, drawn.key]
    const { name, salary, fragment, password, provider, device } = drawn
    const lastWord = (text: string): string => text.match(/[qzxjkvw]{9}/)?.[0] ?? text
    return {
      user,
      formed,
      values: [...formed, name, salary, fragment, password, provider, device],
      marks: [
        ...[drawn.address, drawn.local, drawn.number, lastWord(drawn.hash), drawn.key, salary],
        ...name.split(' '),
        ...[fragment, password, provider, device].map(lastWord),
      ],
    }
  })

/** How the core ends a call that is not about a record. */
interface Refusal {
  readonly status: number
  readonly text: string
}

/**
 * A core that refuses the first user at staging, and the next two in its import, once as a row and once directly; it
 * says the text of each. It takes the last.
 */
function startQuotingCore(users: readonly Marked[], texts: readonly string[]) {
  const output: unknown[] = []
  const rows = new Map<string, object>()
  const accounts = new Map<string, object>()
  let refusal: Refusal | undefined
  const placeOf = (user: ImportUser): number => Number(user.externalUserId?.split('-')[1])
  const account = (user: ImportUser) => ({
    ...{ id: user.externalUserId, isPrimaryUser: true, tenantIds: ['public'], timeJoined: 1 },
    ...{ emails: [], phoneNumbers: [], thirdParty: [], loginMethods: [] },
  })
  const ok = (members: object): Response => Response.json({ status: 'OK', ...members })
  const bad = (body: unknown): Response => new Response(JSON.stringify(body), { status: 400 })

  function stage(staged: readonly ImportUser[]): Response {
    const index = staged.findIndex((user) => placeOf(user) === 0)
    if (index >= 0) return bad({ users: [{ index, errors: [texts[0]] }] })
    for (const user of staged) {
      const place = placeOf(user)
      const about = { ...user, id: `row-${place}`, createdAt: 1, updatedAt: 1 }
      const row = { ...about, status: 'FAILED', errorMessage: texts[place] }
      if (place === 3) accounts.set(String(user.externalUserId), account(user))
      else rows.set(`row-${place}`, row)
    }
    return ok({})
  }

  function reply(path: string, query: URLSearchParams, sent: never): Response {
    if (refusal !== undefined) return new Response(refusal.text, { status: refusal.status })
    const status = query.get('status') as RowStatus | null
    const userId = String(query.get('userId'))
    switch (path) {
      case '/recipe/multitenancy/tenant/list/v2':
        return ok({ tenants: [{ tenantId: 'public' }] })
      case '/recipe/roles':
        return ok({ roles: ['editor'] })
      case '/ee/featureflag':
        return ok({ features: ['account_linking', 'mfa'] })
      case '/bulk-import/users/count':
        return ok({ count: status === null || status === 'FAILED' ? rows.size : 0 })
      case '/bulk-import/users': {
        if (sent !== undefined) return stage(sent['users'])
        return ok({ users: status === null || status === 'FAILED' ? [...rows.values()] : [] })
      }
      case '/bulk-import/users/remove': {
        const ids: string[] = sent['ids']
        for (const id of ids) rows.delete(id)
        return Response.json({ deletedIds: ids, invalidIds: [] })
      }
      case '/bulk-import/import':
        return bad({ errors: [texts[placeOf(sent)]] })
      case '/recipe/userid/map':
        return accounts.has(userId)
          ? ok({ superTokensUserId: `core-${userId}`, externalUserId: userId })
          : Response.json({ status: 'UNKNOWN_MAPPING_ERROR' })
      case '/user/id':
        return ok({ user: accounts.get(userId.replace('core-', '')) })
      case '/recipe/user/metadata':
        return ok({ metadata: {} })
      case '/recipe/totp/device/list':
        return ok({ devices: [] })
      case '/users/by-accountinfo':
        return ok({ users: [] })
      default:
        return ok({ roles: ['editor'] })
    }
  }

  const client = coreClient({
    baseUrl: 'https://core.example',
    apiKey: 'key-of-the-quoting-core',
    fetch: async (input, init) => {
      const { pathname, searchParams } = new URL(String(input))
      const { body } = init ?? {}
      return reply(
        pathname,
        searchParams,
        (body === undefined ? undefined : JSON.parse(String(body))) as never,
      )
    },
  })
  return {
    client,
    output,
    records: users.map(({ user }) => user),
    refuse(given: Refusal | undefined) {
      refusal = given
    },
  }
}

/** What the calls of a client throw where the core refuses them all. */
async function errorsOf(client: CoreClient, user: ImportUser): Promise<unknown[]> {
  const calls = [
    client.stageUsers([user]),
    client.importUser(user),
    client.deleteRows(['row']),
    client.usersWith('public', { email: user.loginMethods[0]?.email ?? '' }),
    importOne(client, user),
  ]
  return (await Promise.allSettled(calls)).map((each) =>
    each.status === 'rejected' ? each.reason : each.value,
  )
}

async function runWith(users: readonly Marked[], text: string, status: number): Promise<string> {
  const [one, two, , last] = users as [Marked, Marked, Marked, Marked]
  const texts = [
    quoting(text, one.values),
    quoting(text, two.values),
    // Of a chunk, the text is the one about another row.
    quoting(text, /Batch entry/.test(text) ? last.values : last.formed),
    '',
  ]
  const core = startQuotingCore(users, texts)
  const { output, records } = core
  const folder = await mkdtemp(join(tmpdir(), 'esa-quoted-'))
  const log = (...line: unknown[]): void => {
    recordOutput('a log line', line)
    output.push(line)
  }
  const stopLog = logDecisions({ info: log, warn: log, error: log }, { accepted: true })
  try {
    const migration = await openMigrationWith(
      {
        core: core.client,
        source: sourceOf(records),
        journal: await fileJournal(folder),
        acceptWarnings: ['phone_not_e164', 'login_twice', 'hash_incomplete'],
        onProgress: (event) => output.push(event),
      },
      QUICK_TIMING,
    )
    const report = await migration.run()
    // Otherwise nothing of what follows has been tried.
    expect(report).toMatchObject({ state: 'to_correct', counts: { invalid: 1, failed: 2 } })
    output.push(report)
    for await (const identity of migration.identities()) output.push(identity)
    await migration.close()
    output.push(await readFile(join(folder, 'journal.ndjson'), 'utf8'))
    output.push((await core.client.listRows()).users.map(({ errorMessage }) => errorMessage))
    for (const record of records.slice(0, 2)) output.push(await importOne(core.client, record))
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'CoreError') throw error
    output.push(error)
  } finally {
    stopLog()
    await rm(folder, { recursive: true, force: true })
  }
  core.refuse({ status, text: texts[0] as string })
  output.push(...(await errorsOf(core.client, one.user)))
  const shown = inspect(output, { depth: 20, showHidden: true, maxStringLength: null })
  return `${shown}\n${JSON.stringify(output)}`
}

it('no output has a value of a record, whatever the core and its database quote', async () => {
  expect(TEXTS.length).toBeGreaterThan(80)
  await fc.assert(
    fc.asyncProperty(
      // Shrunk, two users would have the same logins.
      fc.noShrink(fc.tuple(marked, marked, marked, marked)),
      fc.constantFrom(...TEXTS),
      fc.constantFrom(400, 402, 403, 404, 405, 409),
      async (drawn, text, status) => {
        const users = drawn.map((each, place): Marked => {
          const user = { externalUserId: `legacy-${place}`, ...each.user }
          return { ...each, user }
        })
        const shown = (await runWith(users, text, status)).toLowerCase()
        const marks = users.flatMap((each) => each.marks)
        const found = marks.map((mark) => shown.indexOf(mark.toLowerCase())).filter((at) => at >= 0)
        expect(found.map((at) => shown.slice(at - 100, at + 100))).toEqual([])
      },
    ),
    { numRuns: 40 },
  )
}, 120_000)
