import crypto from 'node:crypto'

/** The minimum of `engines` in package.json. */
const OLDEST = { major: 20, minor: 19 }

/** What is wrong with this Node, and what to do; `undefined` if the package supports it. */
export function nodeFault(version: string = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return undefined
  return `Node ${version} is too old: install Node ${OLDEST.major}.${OLDEST.minor} or later`
}

/**
 * `hash` of `node:crypto`. Node before 20.12 lacks it, so an import by name would be a SyntaxError
 * before anyone could report what `nodeFault` returns.
 */
export const hash: typeof crypto.hash = crypto.hash
