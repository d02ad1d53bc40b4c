import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { StartError } from '../../start-error.js'
import { PAGE } from './gate.js'

export interface PageFile {
  readonly type: string
  readonly content: Buffer
}

/** By their names. */
export type PageFiles = ReadonlyMap<string, PageFile>

const TYPES = {
  [PAGE]: 'text/html; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  'main.css': 'text/css; charset=utf-8',
}

const FOLDER = new URL('../built/', import.meta.url)

/**
 * Reads what `npm run build:room` has built.
 * @throws {StartError} when it has not
 */
export async function readPageFiles(): Promise<PageFiles> {
  try {
    return new Map(await Promise.all(Object.entries(TYPES).map(readPageFile)))
  } catch (cause) {
    const folder = fileURLToPath(FOLDER)
    throw new StartError(`no page in ${folder}; npm run build:room builds it`, { cause })
  }
}

async function readPageFile([name, type]: [string, string]): Promise<[string, PageFile]> {
  return [name, { type, content: await readFile(new URL(name, FOLDER)) }]
}
