import crypto from 'node:crypto'

/** As `engines` in package.json. */
const OLDEST = { major: 20, minor: 19 }

/** What is wrong with this Node, and what to do; `undefined` if the package supports it. */
export function nodeFault(version: string = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return undefined
  return `Node ${version} is too old: install Node ${OLDEST.major}.${OLDEST.minor} or later`
}

/**
 * `hash` of `node:crypto`. Node before 20.12 lacks it, and an import by name would end in a SyntaxError
 * before `nodeFault` is read.
 */
export const hash: typeof crypto.hash = crypto.hash
