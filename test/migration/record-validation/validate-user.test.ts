import { describe, expect, it } from 'vitest'
import { validateUser } from '../../../src/migration/record-validation/validate-user.js'
import {
  ALL_FEATURES,
  BAD_USERS,
  type BadUser,
  KNOWN,
} from '../../support/migration/bad-users/index.js'

/** A user that no feature concerns is judged with all and with none. */
const contextsOf = ({ features }: BadUser) =>
  [ALL_FEATURES, []]
    .filter((_, index) => features === undefined || (features === 'all') === (index === 0))
    .map((given) => ({ ...KNOWN, features: given }))

const textsOf = (user: unknown, context: object) => {
  const result = validateUser(user, context)
  return result.ok ? [] : result.errors.map(({ message }) => message)
}

describe('validateUser', () => {
  it.each(BAD_USERS)('refuses with the texts of the core: $name', (bad) => {
    for (const context of contextsOf(bad)) expect(textsOf(bad.user, context)).toEqual(bad.errors)
  })

  it('has a table of users of which the core without any licence can be asked at least 150', () => {
    const asked = BAD_USERS.filter(({ features, isFault }) => features !== 'all' && !isFault)
    expect(asked.length).toBeGreaterThanOrEqual(150)
    expect(new Set(BAD_USERS.map(({ name }) => name)).size).toBe(BAD_USERS.length)
  })
})
