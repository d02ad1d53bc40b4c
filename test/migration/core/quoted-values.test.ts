import { inspect } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { readFixtures } from '../../core/fixtures/fixture.js'

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
  readonly user: Omit<ImportUser, 'externalUserId'>
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
  .map((drawn): Marked => {
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

/** A client of a core that refuses each user, as staged, as a row and in a direct import, with the text about them. */
function clientOf(users: readonly ImportUser[], textOf: (place: number) => string): CoreClient {
  const errors = users.map((_, index) => ({ index, errors: [textOf(index)] }))
  const row = { status: 'FAILED', createdAt: 1, updatedAt: 1 }
  const rows = users.map((user, place) => ({
    ...user,
    ...row,
    id: `row-${place}`,
    errorMessage: textOf(place),
  }))
  return clientThat((path, { method, body }) => {
    if (method === 'GET') return Response.json({ status: 'OK', users: rows })
    if (path === '/bulk-import/users') return Response.json({ users: errors }, { status: 400 })
    const { externalUserId } = JSON.parse(String(body))
    const place = users.findIndex((user) => user.externalUserId === externalUserId)
    return Response.json({ errors: [textOf(place)] }, { status: 400 })
  })
}

const clientThat = (reply: (path: string, init: RequestInit) => Response): CoreClient =>
  coreClient({
    baseUrl: 'https://core.example',
    apiKey: 'key-of-the-quoting-core',
    fetch: async (input, init = {}) => reply(new URL(String(input)).pathname, init),
  })

/** What a client returns of users whom the core refuses, and throws where it refuses the calls themselves. */
async function outputOf(
  users: readonly ImportUser[],
  { textOf, status }: { textOf: (place: number) => string; status: number },
): Promise<string> {
  const client = clientOf(users, textOf)
  const page = await client.listRows()
  const returned = [
    await client.stageUsers(users),
    ...(await Promise.all(users.map((user) => client.importUser(user)))),
    page.users.map(({ errorMessage }) => errorMessage),
  ]
  const refusing = clientThat(() => new Response(textOf(0), { status }))
  const [user] = users as [ImportUser]
  const calls = [
    refusing.stageUsers([user]),
    refusing.importUser(user),
    refusing.deleteRows(['row']),
    refusing.usersWith('public', { email: user.loginMethods[0]?.email ?? '' }),
  ]
  const thrown = (await Promise.allSettled(calls)).map((each) =>
    each.status === 'rejected' ? each.reason : each.value,
  )
  const output = [returned, thrown]
  const shown = inspect(output, { depth: 20, showHidden: true, maxStringLength: null })
  return `${shown}\n${JSON.stringify(output)}`
}

// Whatever a run or `importOne` tells, they have it of the client.
it('nothing that a client returns or throws has a value of a record, whatever the core and its database quote', async () => {
  expect(TEXTS.length).toBeGreaterThan(80)
  await fc.assert(
    fc.asyncProperty(
      // Shrunk, two users would have the same logins.
      fc.noShrink(fc.tuple(marked, marked, marked)),
      fc.constantFrom(...TEXTS),
      fc.constantFrom(400, 402, 403, 404, 405, 409),
      async (drawn, text, status) => {
        const [one, two, other] = drawn
        const texts = [
          quoting(text, one.values),
          quoting(text, two.values),
          // Of a chunk, the text is the one about another row.
          quoting(text, /Batch entry/.test(text) ? one.values : other.formed),
        ]
        const users = drawn.map(({ user }, place) => ({
          externalUserId: `legacy-${place}`,
          ...user,
        }))
        const textOf = (place: number): string => texts[place] ?? ''
        const shown = (await outputOf(users, { textOf, status })).toLowerCase()
        const found = drawn
          .flatMap(({ marks }) => marks)
          .map((mark) => shown.indexOf(mark.toLowerCase()))
          .filter((at) => at >= 0)
        expect(found.map((at) => shown.slice(at - 100, at + 100))).toEqual([])
      },
    ),
    { numRuns: 100 },
  )
}, 120_000)
