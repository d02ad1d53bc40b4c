import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const readDocument = (path: string): Promise<string> => readFile(`${ROOT}${path}`, 'utf8')

/** Every document, by its path from the root of the repository. */
export async function allDocuments(): Promise<readonly string[]> {
  const folders = ['', 'bench/', 'docs/', 'example-app/', 'test/simulation/']
  const found = folders.map(async (folder) => {
    const files = await readdir(`${ROOT}${folder}`, { recursive: folder === 'docs/' })
    return files.filter((path) => path.endsWith('.md')).map((path) => `${folder}${path}`)
  })
  return (await Promise.all(found)).flat().sort()
}
