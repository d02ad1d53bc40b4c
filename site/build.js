/* npm run site: builds the site into `site/dist`, of the documents as they are and of the doc comments. */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

process.chdir(new URL('.', import.meta.url).pathname)
rmSync('made', { recursive: true, force: true })
for (const path of [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'CODE_OF_CONDUCT.md',
  'SECURITY.md',
  'docs',
  'bench/README.md',
]) {
  cpSync(join('..', path), join('made', path), { recursive: true })
}
run('typedoc', 'typedoc')
run('vitepress', 'vitepress', 'build')

/** Runs the program of a package that is installed here. */
function run(name, program, ...args) {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
  execFileSync(process.execPath, [join(dirname(manifest), 'bin', program), ...args], {
    stdio: 'inherit',
  })
}
