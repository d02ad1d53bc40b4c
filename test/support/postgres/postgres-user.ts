import { execFileSync } from 'node:child_process'

export interface ServerUser {
  readonly uid: number
  readonly gid: number
}

/** Postgres and pgbouncer refuse to run as root: root starts them as this user. */
const UNPRIVILEGED = 'nobody'

let unprivileged: ServerUser | undefined

/** The user who runs the servers; undefined when it is the one who runs this process. */
export function serverUser(): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  unprivileged ??= { uid: idOf('-u'), gid: idOf('-g') }
  return unprivileged
}

function idOf(option: '-u' | '-g'): number {
  return Number(execFileSync('id', [option, UNPRIVILEGED], { encoding: 'utf8' }))
}
