import { execFileSync } from 'node:child_process'

export interface ServerUser {
  readonly uid: number
  readonly gid: number
}

/** Root starts Postgres and pgbouncer as this user, because they refuse to run as root. */
const UNPRIVILEGED = 'nobody'

let unprivileged: ServerUser | undefined

/** Returns the user of the servers; `undefined` if that is the user of this process. */
export function serverUser(): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  unprivileged ??= { uid: idOf('-u'), gid: idOf('-g') }
  return unprivileged
}

function idOf(option: '-u' | '-g'): number {
  return Number(execFileSync('id', [option, UNPRIVILEGED], { encoding: 'utf8' }))
}
