import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Installs what the site is built with, unless it is there already as the lock file says. */

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const INSTALLED = `${FOLDER}node_modules/.installed`

const wanted = createHash('sha256')
  .update(readFileSync(`${FOLDER}package-lock.json`))
  .digest('hex')
const installed = existsSync(INSTALLED) ? readFileSync(INSTALLED, 'utf8') : ''
if (installed !== wanted) {
  execFileSync('npm', ['ci', '--silent'], { cwd: FOLDER, stdio: 'inherit' })
  writeFileSync(INSTALLED, wanted)
}
