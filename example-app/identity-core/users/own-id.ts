import type { ImportedUser } from './imported-user.js'

/** Under what the core keeps roles, metadata and devices. */
export function ownId(user: ImportedUser): string {
  return user.externalUserId ?? user.id
}
