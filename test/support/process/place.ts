/** Where a server or a program runs. */
export interface Place {
  /** Its IP address, by which the others reach it. */
  readonly host: string
  /** The network namespace of that address, of those of `ip netns`; without one, that of this process. */
  readonly namespace?: string
}

interface User {
  readonly uid: number
  readonly gid: number
}

export const HERE: Place = { host: '127.0.0.1' }

/** What a command line begins with that runs in the place: nothing if that is here. */
export function enter({ namespace }: Place, user?: User): string[] {
  if (namespace === undefined) return []
  const identity = user ? ['--setuid', String(user.uid), '--setgid', String(user.gid)] : []
  return ['nsenter', `--net=/run/netns/${namespace}`, ...identity]
}
