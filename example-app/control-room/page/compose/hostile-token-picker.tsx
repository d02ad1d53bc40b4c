import { useComputed, useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { room } from '../state.js'
import { changeHostileToken, draft } from './draft.js'
import './hostile-token-picker.css'

const NOTHING = 'nothing: send the genuine token'

interface Entry {
  readonly name: string | undefined
  readonly text: string
  readonly why: string
}

const GENUINE: Entry = { name: undefined, text: NOTHING, why: '' }

/** Chooses what to do to the token: nothing, or a case of the catalogue, found by its words. */
export function HostileTokenPicker() {
  const id = useId()
  const isOpen = useSignal(false)
  const filter = useSignal('')
  const active = useSignal(0)
  const matches = useComputed(() => matching(filter.value))
  const chosen = draft.value.hostileToken ?? NOTHING

  function open(): void {
    if (isOpen.value) return
    filter.value = ''
    active.value = Math.max(
      0,
      matches.value.findIndex(({ name }) => name === draft.value.hostileToken),
    )
    isOpen.value = true
  }

  function choose(entry: Entry | undefined): void {
    if (entry) changeHostileToken(entry.name)
    isOpen.value = false
  }

  function move(by: number): void {
    open()
    const last = matches.value.length - 1
    active.value = Math.min(Math.max(active.value + by, 0), Math.max(last, 0))
  }

  function pressed(event: KeyboardEvent): void {
    const steps: Record<string, () => void> = {
      ArrowDown: () => (isOpen.value ? move(1) : open()),
      ArrowUp: () => (isOpen.value ? move(-1) : open()),
      PageDown: () => move(PAGE),
      PageUp: () => move(-PAGE),
      Enter: () => (isOpen.value ? choose(matches.value[active.value]) : open()),
    }
    const step = steps[event.key]
    if (step) {
      event.preventDefault()
      step()
    } else if (event.key === 'Escape' && isOpen.value) {
      event.preventDefault()
      isOpen.value = false
    }
  }

  return (
    <div class="field picker">
      <label for={id}>What is done to the token</label>
      <input
        id={id}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-expanded={isOpen.value}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-describedby={`${id}-hint`}
        aria-activedescendant={isOpen.value ? `${id}-${active.value}` : undefined}
        value={isOpen.value ? filter.value : chosen}
        placeholder="Filter: alg, kid, aud, expired…"
        onClick={open}
        onInput={({ currentTarget }) => {
          isOpen.value = true
          filter.value = currentTarget.value
          active.value = 0
        }}
        onKeyDown={pressed}
        onBlur={() => {
          isOpen.value = false
        }}
      />
      <p class="hint" id={`${id}-hint`}>
        {hintFor(draft.value.hostileToken)}
      </p>
      <div
        class="picker-list"
        id={`${id}-list`}
        role="listbox"
        aria-label="What is done to the token"
        hidden={!isOpen.value}
      >
        {isOpen.value &&
          matches.value.map((entry, index) => (
            <PickerOption
              key={entry.text}
              id={`${id}-${index}`}
              entry={entry}
              isActive={index === active.value}
              onChoose={() => choose(entry)}
            />
          ))}
        {isOpen.value && matches.value.length === 0 && (
          <p class="empty">No case has these words.</p>
        )}
      </div>
    </div>
  )
}

/** How far Page Up and Page Down go. */
const PAGE = 8

interface PickerOptionProps {
  readonly id: string
  readonly entry: Entry
  readonly isActive: boolean
  readonly onChoose: () => void
}

function PickerOption({ id, entry, isActive, onChoose }: PickerOptionProps) {
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: The focus stays in the text box, which names the active option.
    // biome-ignore lint/a11y/useKeyWithClickEvents: The text box takes the keys.
    <div
      class={isActive ? 'picker-option picker-active' : 'picker-option'}
      id={id}
      role="option"
      aria-selected={isActive}
      ref={(element) => {
        if (isActive) element?.scrollIntoView({ block: 'nearest' })
      }}
      // The text box keeps the focus.
      onMouseDown={(event) => event.preventDefault()}
      onClick={onChoose}
    >
      <span>{entry.text}</span>
      {entry.why && <span class="picker-why">{entry.why}</span>}
    </div>
  )
}

/** The entries with all the words of the filter in their names or reasons. */
function matching(filter: string): readonly Entry[] {
  const words = filter.toLowerCase().split(/\s+/)
  const catalogue = room.value?.catalogue ?? []
  const entries = catalogue.map(({ name, why }): Entry => ({ name, text: name, why }))
  return [GENUINE, ...entries].filter(({ text, why }) => {
    const searched = `${text} ${why}`.toLowerCase()
    return words.every((word) => searched.includes(word))
  })
}

function hintFor(chosen: string | undefined): string {
  const catalogue = room.value?.catalogue
  if (!catalogue) return 'The package’s catalogue of hostile tokens.'
  if (chosen === undefined) return `${catalogue.length} hostile tokens of the package’s catalogue.`
  return catalogue.find(({ name }) => name === chosen)?.why ?? ''
}
