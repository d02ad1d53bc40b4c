import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { faultsOfBuilt } from './built-faults.js'
import type { NavigationGroup } from './site.js'

/** Looks at the site that VitePress has built: no link leads nowhere, nothing comes from elsewhere. */

const FOLDER = fileURLToPath(new URL('..', import.meta.url))
const BUILT = join(FOLDER, 'dist')

const files = await readdir(BUILT, { recursive: true })
const texts = files.filter((file) => /\.(?:html|css)$/.test(file))
const contents = await Promise.all(
  texts.map(async (file) => [file, await readFile(join(BUILT, file), 'utf8')] as const),
)
const navigation: readonly NavigationGroup[] = JSON.parse(
  await readFile(join(FOLDER, 'made', 'navigation.json'), 'utf8'),
)

const faults = faultsOfBuilt({
  files: new Set(files),
  texts: new Map(contents),
  base: process.env['SITE_BASE'] ?? '/',
  navigation: navigation.flatMap(({ items }) => items.map(({ link }) => link)),
})
if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exitCode = 1
}
