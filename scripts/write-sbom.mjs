// Prints the CycloneDX SBOM of the package: the dependencies that its users install, with the versions and hashes of
// package-lock.json. Not `npm sbom --omit dev` here: it leaves out what a development dependency needs too.
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const fromRoot = (name) => new URL(`../${name}`, import.meta.url)
const { name, devDependencies, overrides, ...manifest } = JSON.parse(
  readFileSync(fromRoot('package.json'), 'utf8'),
)

const temporary = mkdtempSync(join(tmpdir(), 'sbom-'))
try {
  // npm takes the name of the component from the folder.
  const cwd = join(temporary, name)
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name, ...manifest }))
  for (const file of ['package-lock.json', '.npmrc']) copyFileSync(fromRoot(file), join(cwd, file))
  const npm = (...args) => execFileSync('npm', [...args, '--package-lock-only'], { cwd })
  npm('install', '--offline')
  process.stdout.write(
    npm('sbom', '--omit', 'peer', '--sbom-format', 'cyclonedx', '--sbom-type', 'library'),
  )
} finally {
  rmSync(temporary, { recursive: true })
}
