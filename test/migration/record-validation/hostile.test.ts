import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { validateUser } from '../../../src/migration/record-validation/validate-user.js'
import { findingsOf, GOOD_USER, PASSWORD_USER } from './users.js'

const SECRETS = ['hostile-hash-1', 'hostile-plain-text-2', 'hostile-totp-key-3']
const [HASH = '', PLAIN_TEXT = '', TOTP_KEY = ''] = SECRETS

/** With a secret wherever a record has one. */
const SECRETIVE = {
  ...GOOD_USER,
  totpDevices: [{ ...GOOD_USER.totpDevices[0], secretKey: TOTP_KEY.repeat(20) }],
  loginMethods: GOOD_USER.loginMethods.map((method) =>
    method.recipeId === 'emailpassword'
      ? {
          ...method,
          tenantIds: [] as string[],
          passwordHash: HASH,
          plainTextPassword: PLAIN_TEXT,
          plaintextPassword: PLAIN_TEXT,
        }
      : method,
  ),
}

type Path = (string | number)[]

/** Where a record has members and elements. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const names = Array.isArray(value) ? [...value.keys()] : Object.keys(value)
  const inner = names.flatMap((name) =>
    pathsOf((value as Record<string | number, unknown>)[name], [...path, name]),
  )
  return [path, ...inner]
}

function replaced(value: unknown, [name, ...path]: Path, by: unknown): unknown {
  if (name === undefined) return by
  const copy: Record<string | number, unknown> = Array.isArray(value)
    ? ([...value] as never)
    : { ...(value as object) }
  copy[name] = replaced(copy[name], path, by)
  return copy
}

const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)))
const anyNumber = fc.oneof(fc.double(), fc.maxSafeInteger(), fc.constantFrom(1e300, -1e-7, 2 ** 63))
const faulty = fc
  .array(
    fc.tuple(
      fc.constantFrom(...pathsOf(SECRETIVE)),
      fc.oneof(json, anyNumber, fc.string({ unit: 'binary' })),
    ),
    { maxLength: 3 },
  )
  .map((faults) =>
    faults.reduce<unknown>((user, [path, by]) => {
      try {
        return replaced(user, path, by)
      } catch {
        return user
      }
    }, SECRETIVE),
  )

const CONTEXTS = [{}, { tenants: [], roles: [], features: [] }]

describe('validateUser, whatever it is given', () => {
  it('answers any JSON value, and is consistent', () => {
    fc.assert(
      fc.property(fc.oneof(json, faulty), fc.constantFrom(...CONTEXTS), (value, context) => {
        const result = validateUser(value, context)
        if (result.ok) expect(result.user).toBe(value)
        else expect(result.errors.length).toBeGreaterThan(0)
      }),
    )
  })

  it('tells no secret', () => {
    fc.assert(
      fc.property(faulty, fc.constantFrom(...CONTEXTS), (user, context) => {
        const { warnings, ...result } = validateUser(user, context)
        const told = JSON.stringify([warnings, result.ok ? [] : result.errors])
        for (const secret of SECRETS) expect(told).not.toContain(secret)
      }),
      { numRuns: 500 },
    )
  })

  it.each(['loginMethods', 'userRoles', 'totpDevices'] as const)('refuses a hole in %s', (name) => {
    const holed: unknown[] = [...GOOD_USER[name]]
    holed.length += 1
    const fault = `wrong_type ${name}[${holed.length - 1}]`
    expect(findingsOf({ ...GOOD_USER, [name]: holed })).toEqual([fault])
  })

  it.each([undefined, [], 1n])('refuses what is no object: %s', (value) => {
    expect(validateUser(value)).toEqual({
      ok: false,
      errors: [{ field: '', code: 'wrong_type', message: 'This should be of type object.' }],
      warnings: [],
    })
  })

  const nested = (levels: number, open = '{"a":', close = '}') =>
    JSON.parse(`${open.repeat(levels)}1${close.repeat(levels)}`)

  it('takes as many levels as the core', () => {
    // The record itself is one, and the call around it has two; the core reads 255.
    const of = (levels: number) => findingsOf({ ...PASSWORD_USER, userMetadata: nested(levels) })
    expect(of(252)).toEqual([])
    expect(of(253)).toEqual(['too_deep userMetadata'])
    const [method] = PASSWORD_USER.loginMethods
    const inner = (levels: number) =>
      findingsOf({ loginMethods: [{ ...method, x: nested(levels, '[', ']') }] })
    expect(inner(250)).toEqual(['unknown_member loginMethods[0].x'])
    expect(inner(251)).toContain('too_deep loginMethods')
  })

  it.each([
    ['userMetadata', '{"a":', '}'],
    ['userMetadata', '{"a":[', ']}'],
    ['unknown', '[', ']'],
  ])('refuses %s of ten thousand levels: %s', (name, open, close) => {
    const user = { ...PASSWORD_USER, [name]: nested(10_000, open, close) }
    expect(findingsOf(user)).toContain(`too_deep ${name}`)
  })

  it('bounds what it finds, and lets no code hide another', () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`x${n}`, 1]))
    const { warnings } = validateUser({ ...PASSWORD_USER, ...many, userMetadata: { token: 'x' } })
    expect(warnings.length).toBe(101)
    expect(warnings.map(({ code }) => code)).toContain('credential_in_metadata')
    const bad = { loginMethods: Array.from({ length: 100_000 }, () => ({})) }
    const result = validateUser(bad)
    expect(!result.ok && result.errors.length).toBe(100)
  })
})
