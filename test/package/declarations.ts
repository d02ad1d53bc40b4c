import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PublicName {
  name: string
  documented: boolean
}

const EXPORT_LIST = /export (?:type )?\{([^}]*)\}(?: from '([^']+)')?/g
const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:function|const|class|interface|type|namespace) (\w+)/gm

/** Every name that a declaration file exports, and whether a doc comment stands where it is declared. */
export async function readPublicNames(file: string): Promise<PublicName[]> {
  const text = await readFile(file, 'utf8')
  const declared = new Map<string, boolean>()
  for (const match of text.matchAll(DECLARATION)) {
    const name = match[1] ?? ''
    const before = text.slice(0, match.index).trimEnd()
    declared.set(name, declared.get(name) || before.endsWith('*/'))
  }
  const names = [...declared].map(([name, documented]) => ({ name, documented }))
  for (const [, list = '', source] of text.matchAll(EXPORT_LIST)) {
    if (source === undefined) continue
    names.push(...(await readListed(join(dirname(file), source), list)))
  }
  return names
}

/** The names of `export { a, type B, c as d } from 'source'`. */
async function readListed(source: string, list: string): Promise<PublicName[]> {
  const origin = await readPublicNames(source.replace(/\.js$/, '.d.ts'))
  const items = list.split(',').map((item) => item.trim().replace(/^type /, ''))
  return items.filter(Boolean).map((item) => {
    const [original, renamed = original] = item.split(' as ')
    const documented = origin.some((one) => one.name === original && one.documented)
    return { name: renamed ?? item, documented }
  })
}

/** The packages that a declaration file mentions, directly or through the files that it imports. */
export async function readMentionedPackages(
  file: string,
  seen: Set<string> = new Set(),
): Promise<Set<string>> {
  const packages = new Set<string>()
  if (seen.has(file)) return packages
  seen.add(file)
  const text = await readFile(file, 'utf8')
  for (const [, source = ''] of text.matchAll(/(?:from|import\() ?'([^']+)'/g)) {
    if (!source.startsWith('.')) packages.add(source)
    else {
      const next = join(dirname(file), source.replace(/\.js$/, '.d.ts'))
      for (const name of await readMentionedPackages(next, seen)) packages.add(name)
    }
  }
  return packages
}
