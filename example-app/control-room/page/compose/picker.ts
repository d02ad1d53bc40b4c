import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { hostileTokens } from '../state.js'
import { changeHostileToken, draft } from './draft.js'

/** What can be done to the token. */
export interface Entry {
  readonly name: string | undefined
  readonly text: string
  readonly why: string
}

const GENUINE: Entry = { name: undefined, text: 'nothing: send the genuine token', why: '' }

/** How far Page Up and Page Down go. */
const PAGE = 8

/** The list of the catalogue as it is searched, and walked through by keys. */
export interface Picker {
  readonly isOpen: ReadonlySignal<boolean>
  readonly filter: ReadonlySignal<string>
  readonly matches: ReadonlySignal<readonly Entry[]>
  /** The place of the entry that Enter chooses. */
  readonly active: ReadonlySignal<number>
  open(): void
  close(): void
  search(words: string): void
  choose(entry: Entry | undefined): void
  /** Returns whether the key was one of the list's. */
  press(key: string): boolean
}

export function createPicker(): Picker {
  const isOpen = signal(false)
  const filter = signal('')
  const active = signal(0)
  const matches = computed(() => matching([GENUINE, ...catalogueEntries()], filter.value))

  function open(): void {
    if (isOpen.value) return
    filter.value = ''
    const chosen = matches.value.findIndex(({ name }) => name === draft.value.hostileToken)
    active.value = Math.max(0, chosen)
    isOpen.value = true
  }

  function close(): void {
    isOpen.value = false
  }

  function search(words: string): void {
    open()
    filter.value = words
    active.value = 0
  }

  function choose(entry: Entry | undefined): void {
    if (entry) changeHostileToken(entry.name)
    close()
  }

  function move(by: number): void {
    if (!isOpen.value) {
      open()
      return
    }
    const last = Math.max(0, matches.value.length - 1)
    active.value = Math.min(Math.max(active.value + by, 0), last)
  }

  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    PageDown: () => move(PAGE),
    PageUp: () => move(-PAGE),
    Enter: () => (isOpen.value ? choose(matches.value[active.value]) : open()),
    Escape: close,
  }

  function press(key: string): boolean {
    if (!Object.hasOwn(keys, key)) return false
    keys[key]?.()
    return true
  }

  return { isOpen, filter, matches, active, open, close, search, choose, press }
}

/** The name of what is chosen now. */
export const chosenText = (): string => draft.value.hostileToken ?? GENUINE.text

const catalogueEntries = (): Entry[] =>
  (hostileTokens.value ?? []).map(({ name, why }) => ({ name, text: name, why }))

/** The entries with all the words in their names or reasons. */
function matching(entries: readonly Entry[], filter: string): readonly Entry[] {
  const words = filter.toLowerCase().split(/\s+/)
  return entries.filter(({ text, why }) => {
    const searched = `${text} ${why}`.toLowerCase()
    return words.every((word) => searched.includes(word))
  })
}
