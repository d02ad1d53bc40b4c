/** An import of the package, and the page that tells all of it. */
export interface EntryPoint {
  /** As it is imported: `express-service-auth/redis`. */
  readonly name: string
  /** From the root of the project: `src/stores/redis/index.ts`. */
  readonly source: string
  /** Without its ending: `redis`. */
  readonly page: string
}

/** The members of `package.json` that say what can be imported. */
export interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly types?: string }>>
}

/** What can be imported with types, in the order of `package.json`. */
export function entryPointsOf({ name, exports }: Manifest): readonly EntryPoint[] {
  return Object.entries(exports).flatMap(([path, target]) => {
    const types = typeof target === 'string' ? undefined : target.types
    if (types === undefined) return []
    const source = types.replace(/^\.\/dist\//, 'src/').replace(/\.d\.ts$/, '.ts')
    const page = path === '.' ? name : path.slice('./'.length)
    return [{ name: path === '.' ? name : `${name}/${page}`, source, page }]
  })
}

/** The names that an `index.ts` exports, which holds nothing but exports by name. */
export function exportsOf(index: string): readonly string[] {
  const clauses = index.matchAll(/^export (?:type )?\{(.*?)\} from /gms)
  return [...clauses].flatMap(([, clause = '']) =>
    clause
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== ''),
  )
}
