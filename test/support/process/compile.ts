import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { CACHE, writeCached } from './cache.js'
import { packedPackages } from './packed-packages.js'
import { PROGRAM_OPTIONS } from './program-options.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Makes programs import packages from the files of `packedPackages`. */
const packedImports = (packages: ReadonlyMap<string, string>): Plugin => ({
  name: 'packed-imports',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path }) => {
      const file = packages.get(path)
      return file === undefined ? undefined : { path: file, external: true }
    })
  },
})

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
    ...PROGRAM_OPTIONS,
    plugins: [...PROGRAM_OPTIONS.plugins, packedImports(await packedPackages())],
  })
  const text = outputFiles[0]?.text ?? ''
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const file = `${CACHE}/programs/${digest}/${name}.mjs`
  writeCached(file, text)
  return file
}
