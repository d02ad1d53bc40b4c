import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What the tests keep from one run to the next; inside the project, so that packages are found from there. */
export const CACHE = fileURLToPath(
  new URL('../../../node_modules/.cache/express-service-auth', import.meta.url),
)

/** Writes the file whole or not at all: several processes may write the same. */
export function writeCached(file: string, text: string): void {
  const unfinished = `${file}.${process.pid}`
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(unfinished, text, { mode: 0o600 })
  renameSync(unfinished, file)
}
