import { readdir } from 'node:fs/promises'
import { ROOT } from './blocks.js'

/** Every document, by its path from the root of the repository. */
export async function allDocuments(): Promise<readonly string[]> {
  const inDocs = await readdir(`${ROOT}docs`, { recursive: true })
  const found = inDocs.filter((path) => path.endsWith('.md')).map((path) => `docs/${path}`)
  const others = [
    'CONTRIBUTING.md',
    'CODE_OF_CONDUCT.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'bench/README.md',
    'example-app/README.md',
    'test/simulation/README.md',
  ]
  return ['README.md', ...others, ...found.sort()]
}
