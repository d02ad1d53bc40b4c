import { createDigestTable } from '../../source/digest-table.js'
import { loginKeysOf } from '../../user/login-keys.js'

type LoginHolder = Parameters<typeof loginKeysOf>[0]

/** Which record has a login first, in about 30 bytes a login. */
export interface LoginIndex {
  /** `record`, an ordinal or a line, is stored for each login that has none yet. */
  add(user: LoginHolder, record: number): void
  /** The record that has one of the user's logins. */
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
