import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Files that test runs share; where programs find the packages of `test` and of the project. */
export const CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/express-service-auth', import.meta.url),
)

/** Writes the file atomically, because several processes may write it at once. */
export function writeCached(file: string, text: string): void {
  const unfinished = `${file}.${process.pid}`
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(unfinished, text, { mode: 0o600 })
  renameSync(unfinished, file)
}
