/** Where a server or a program runs. */
export interface Place {
  /** Its IP address, for the other places. */
  readonly host: string
  /** The namespace of that address, as `ip netns` names it. Default: the namespace of this process. */
  readonly namespace?: string
}

interface User {
  readonly uid: number
  readonly gid: number
}

export const HERE: Place = { host: '127.0.0.1' }

/** Returns the words before a command that make it run in the place; none for `HERE`. */
export function enter({ namespace }: Place, user?: User): string[] {
  if (namespace === undefined) return []
  const identity = user ? ['--setuid', String(user.uid), '--setgid', String(user.gid)] : []
  return ['nsenter', `--net=/run/netns/${namespace}`, ...identity]
}
