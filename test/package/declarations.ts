import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PublicName {
  name: string
  documented: boolean
}

const DECLARATION =
  /^(?:declare )?(?:abstract )?(?:function|const|class|interface|type|namespace) (\w+)/gm
const EXPORTS = /^export \{(.*?)\};?$/gms
const IMPORT = /^import \{([^}]*)\} from "(\.[^"]+)"/gm

/** Every name that a declaration file exports, and whether a doc comment stands where it is declared. */
export async function readPublicNames(file: string): Promise<PublicName[]> {
  const text = await readFile(file, 'utf8')
  const isDocumented = new Map<string, boolean>()
  for (const [, list = '', source = ''] of text.matchAll(IMPORT)) {
    for (const { name, documented } of await readPublicNames(declarationFile(file, source))) {
      if (list.trim().split(', ').includes(name)) isDocumented.set(name, documented)
    }
  }
  for (const match of text.matchAll(DECLARATION)) {
    const name = match[1] ?? ''
    const before = text.slice(0, match.index).trimEnd()
    isDocumented.set(name, isDocumented.get(name) || before.endsWith('*/'))
  }
  const exported = [...text.matchAll(EXPORTS)].flatMap(([, list = '']) => list.trim().split(', '))
  const names = exported.map((item) => item.replace(/^type /, ''))
  return names.map((name) => ({ name, documented: isDocumented.get(name) ?? false }))
}

const declarationFile = (file: string, source: string): string =>
  join(dirname(file), source.replace(/\.js$/, '.d.ts'))

/** The packages that a declaration file mentions, directly or through the files that it imports. */
export async function readMentionedPackages(
  file: string,
  seen: Set<string> = new Set(),
): Promise<Set<string>> {
  const packages = new Set<string>()
  if (seen.has(file)) return packages
  seen.add(file)
  const text = await readFile(file, 'utf8')
  // Examples in doc comments import this package: their lines begin with a star.
  for (const [, source = ''] of text.matchAll(/^[^*\n]*(?:from|import\() ?["']([^"']+)["']/gm)) {
    if (!source.startsWith('.')) packages.add(source)
    else {
      for (const name of await readMentionedPackages(declarationFile(file, source), seen)) {
        packages.add(name)
      }
    }
  }
  return packages
}
