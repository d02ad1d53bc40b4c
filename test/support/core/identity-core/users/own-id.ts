import type { ImportedUser } from './imported-user.js'

/** The id under which the core keeps roles, metadata and devices. */
export function ownId(user: ImportedUser): string {
  return user.externalUserId ?? user.id
}
