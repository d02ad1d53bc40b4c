import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { PROGRAM_OPTIONS } from '../../../scripts/program-options.js'
import { CACHE, writeCached } from './cache.js'
import { packedPackages } from './packed-packages.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Packages are read from few files. */
const packedOnes = (packages: ReadonlyMap<string, string>): Plugin => ({
  name: 'packed-ones',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path }) => {
      const file = packages.get(path)
      return file === undefined ? undefined : { path: file, external: true }
    })
  },
})

const files = new Map<string, Promise<string>>()

/**
 * A TypeScript program of this project as one JavaScript file, packages apart. It starts in a
 * sixth of the processor time that it takes when its files are compiled as they are loaded.
 */
export function compile(program: URL): Promise<string> {
  const path = fileURLToPath(program)
  const file = files.get(path) ?? save(basename(path, '.ts'), { entryPoints: [path] })
  files.set(path, file)
  return file
}

/** The same of a text that imports by paths from the root of the project. */
export const compileText = (contents: string): Promise<string> =>
  save('program', { stdin: { contents, resolveDir: ROOT, loader: 'ts' } })

/** In a folder named for its contents. */
async function save(name: string, entry: BuildOptions): Promise<string> {
  const { outputFiles } = await build({
    ...entry,
    ...PROGRAM_OPTIONS,
    plugins: [...PROGRAM_OPTIONS.plugins, packedOnes(await packedPackages())],
  })
  const text = outputFiles[0]?.text ?? ''
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const file = `${CACHE}/programs/${digest}/${name}.mjs`
  writeCached(file, text)
  return file
}
