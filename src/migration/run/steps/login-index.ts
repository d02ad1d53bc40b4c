import { loginKeysOf } from '../../record-validation/login-keys.js'
import { createDigestTable } from '../../source/digest-table.js'

type LoginHolder = Parameters<typeof loginKeysOf>[0]

/** Maps each login to its first record. Takes about 30 bytes per login. */
export interface LoginIndex {
  /** Adds the user's logins. An existing login keeps its record. `record` is an ordinal or a line. */
  add(user: LoginHolder, record: number): void
  /** Returns a record that has one of the user's logins. */
  find(user: LoginHolder): number | undefined
}

export function createLoginIndex(): LoginIndex {
  const table = createDigestTable()
  return {
    add(user, record) {
      for (const key of loginKeysOf(user)) table.add(key, record)
    },
    find(user) {
      for (const key of loginKeysOf(user)) {
        const record = table.find(key)
        if (record !== undefined) return record
      }
      return undefined
    },
  }
}
