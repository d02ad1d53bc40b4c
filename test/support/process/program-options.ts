import { readFile } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BuildOptions, Plugin } from 'esbuild'

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

/** A TypeScript program of this project as one JavaScript file for Node, packages apart. */
export const PROGRAM_OPTIONS = {
  absWorkingDir: fileURLToPath(new URL('../../../', import.meta.url)),
  tsconfig: 'tsconfig.json',
  bundle: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  plugins: [ownAddresses],
  write: false,
} satisfies BuildOptions
