const SETTINGS = new WeakMap<object, string>()

/**
 * Makes `check` warn that the library of a runner keeps a connection whose reply never comes, and offers no
 * way to destroy it from outside. Only `setting` can: an option of the library that creates sockets with a
 * time limit.
 */
export function warnOfSilentConnections<R extends object>(runner: R, setting: string): R {
  SETTINGS.set(runner, setting)
  return runner
}

/** The warnings for `check`. */
export function silentConnectionWarnings(runner: object): readonly string[] {
  const setting = SETTINGS.get(runner)
  if (setting === undefined) return []
  return [
    `a connection whose reply never comes stays in the pool for good, unless ${setting} makes sockets with a time limit`,
  ]
}
