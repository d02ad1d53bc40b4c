import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type CodeBlock, codeBlocks } from './markdown.js'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const readDocument = (path: string): Promise<string> => readFile(`${ROOT}${path}`, 'utf8')

/** The code of documents as files, one a block, that run as if they stood in an app. */
export interface PlacedBlocks {
  readonly blocks: readonly CodeBlock[]
  /** @throws Error unless there is one block under the heading. */
  fileOf(heading: string): string
  remove(): Promise<void>
}

/** Writes the blocks of the documents to a folder that has the name in its own. */
export async function placeBlocks(
  name: string,
  ...documents: readonly string[]
): Promise<PlacedBlocks> {
  const texts = await Promise.all(documents.map(readDocument))
  return placeCode(name, texts.flatMap(codeBlocks))
}

/** The name of the file that other blocks import, which a block has in its first line. */
const nameIn = (code: string): string | undefined => /^\/\/ ([\w-]+\.ts)\n/.exec(code)?.[1]

/** Writes blocks to a folder that has the name in its own. */
export async function placeCode(name: string, blocks: readonly CodeBlock[]): Promise<PlacedBlocks> {
  // Where the packages of the tests and of the project are found.
  const folder = `${ROOT}test/docs/.blocks-${name}`
  await mkdir(folder, { recursive: true })
  const fileAt = (index: number): string =>
    `${folder}/${nameIn(blocks[index]?.code ?? '') ?? `block-${index}.ts`}`
  await Promise.all(blocks.map(({ code }, index) => writeFile(fileAt(index), code)))
  return {
    blocks,
    fileOf(heading) {
      const [index, ...others] = blocks.flatMap((block, at) =>
        block.heading === heading ? [at] : [],
      )
      if (index === undefined || others.length > 0) {
        throw new Error(`there is not one block under «${heading}» of ${name}`)
      }
      return fileAt(index)
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
