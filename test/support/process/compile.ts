import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { CACHE, writeCached } from './cache.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Each file's own address, not that of the whole program: some read what lies beside them. */
const ownAddresses: Plugin = {
  name: 'own-addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const address = JSON.stringify(pathToFileURL(path).href)
      return { contents: text.replaceAll('import.meta.url', address), loader: 'ts' }
    })
  },
}

const files = new Map<string, Promise<string>>()

/**
 * Compiles a TypeScript program of this project to one JavaScript file, which imports packages. It starts in a
 * sixth of the processor time that a program needs whose files are compiled on load.
 */
export function compile(program: URL): Promise<string> {
  const path = fileURLToPath(program)
  const file = files.get(path) ?? save(basename(path, '.ts'), { entryPoints: [path] })
  files.set(path, file)
  return file
}

/** Compiles a source text that imports by paths from the root of the project. */
export const compileText = (contents: string): Promise<string> =>
  save('program', { stdin: { contents, resolveDir: ROOT, loader: 'ts' } })

/** Saves the program in a folder that is named after the digest of its text. */
async function save(name: string, entry: BuildOptions): Promise<string> {
  const { outputFiles } = await build({
    ...entry,
    absWorkingDir: ROOT,
    tsconfig: 'tsconfig.json',
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'esm',
    plugins: [ownAddresses],
    write: false,
  })
  const text = outputFiles[0]?.text ?? ''
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const file = `${CACHE}/programs/${digest}/${name}.mjs`
  writeCached(file, text)
  return file
}
