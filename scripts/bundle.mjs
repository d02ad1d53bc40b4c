// Bundles the entry points and the command of package.json into dist, and writes its schema.sql.
// Before it, tsc writes the declarations: it alone infers the types that no annotation states.
import { chmod, readFile, rm, writeFile } from 'node:fs/promises'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'

const DECLARATIONS = 'dist/declarations'

const manifest = JSON.parse(await readFile('package.json', 'utf8'))

/** Without folder and ending: `stores/redis/index`. */
const nameOf = (path) => path.replace(/^(\.\/)?dist\//, '').replace(/(\.d\.ts|\.js)$/, '')
const entryPoints = Object.values(manifest.exports)
  .flatMap(({ types = [] }) => types)
  .map(nameOf)
const commands = Object.values(manifest.bin)

const inputs = (names, toPath) => Object.fromEntries(names.map((name) => [name, toPath(name)]))

/** What several entry points share becomes a chunk: a class or a WeakMap exists once. */
async function bundle(options, ending) {
  const bundled = await rolldown({
    ...options,
    // Packages stay imports, so that users see, update and share them.
    external: (id) => !/^[./]/.test(id),
    tsconfig: false,
    onLog(level, { code, message }) {
      // A machine under load is no fault of the bundle.
      if (level === 'warn' && code !== 'PLUGIN_TIMINGS') throw new Error(message)
    },
  })
  await bundled.write({
    dir: 'dist',
    entryFileNames: `[name]${ending}`,
    chunkFileNames: `shared/[name]${ending}`,
    // Names stay as they are written, for stack traces.
    minifyInternalExports: false,
    codeSplitting: {
      groups: [
        // The command reads the version of Node before it loads anything that needs a newer one.
        { name: 'supported-node', test: /supported-node/, priority: 1 },
        { name: 'base', test: /\/src\/base\//, minShareCount: 3 },
      ],
    },
    hoistTransitiveImports: false,
    comments: ending === '.d.ts',
  })
  await bundled.close()
}

await bundle(
  {
    input: inputs([...entryPoints, ...commands.map(nameOf)], (name) => `src/${name}.ts`),
    platform: 'neutral',
    transform: { target: 'node20.19' },
  },
  '.js',
)
await bundle(
  {
    input: inputs(entryPoints, (name) => `${DECLARATIONS}/${name}.d.ts`),
    plugins: [dts({ dtsInput: true })],
    experimental: { attachDebugInfo: 'none' },
  },
  '.d.ts',
)
await rm(DECLARATIONS, { recursive: true })

const { migration } = await import('../dist/stores/postgres/index.js')
await writeFile('dist/stores/postgres/schema.sql', migration())
for (const path of commands) await chmod(path, 0o755)
