import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import { hostileTokens } from '../state.js'
import { draft } from './draft.js'
import { chosenText, createPicker, type Entry, type Picker } from './picker.js'
import './hostile-token-picker.css'

const LABEL = 'What is done to the token'

/** Chooses what to do to the token: nothing, or a case of the catalogue, found by its words. */
export function HostileTokenPicker() {
  const id = useId()
  const picker = useMemo(createPicker, [])
  return (
    <div class="field picker">
      <label for={id}>{LABEL}</label>
      <SearchBox id={id} picker={picker} />
      <p class="hint" id={`${id}-hint`}>
        {hintFor(draft.value.hostileToken)}
      </p>
      <Matches id={id} picker={picker} />
    </div>
  )
}

interface PartProps {
  readonly id: string
  readonly picker: Picker
}

/** A combobox: the focus stays in it, and it names the active option. */
function SearchBox({ id, picker }: PartProps) {
  const isOpen = picker.isOpen.value
  return (
    <input
      id={id}
      type="text"
      role="combobox"
      autocomplete="off"
      spellcheck={false}
      aria-expanded={isOpen}
      aria-controls={`${id}-list`}
      aria-autocomplete="list"
      aria-describedby={`${id}-hint`}
      aria-activedescendant={isOpen ? `${id}-${picker.active.value}` : undefined}
      value={isOpen ? picker.filter.value : chosenText()}
      placeholder="Filter: alg, kid, aud, expired…"
      onClick={picker.open}
      onBlur={picker.close}
      onInput={({ currentTarget, data }) => {
        // What is typed into the closed box begins a search; what stood there was the choice.
        picker.search(isOpen ? currentTarget.value : (data ?? ''))
      }}
      onKeyDown={(event) => {
        if (picker.press(event.key)) event.preventDefault()
      }}
    />
  )
}

function Matches({ id, picker }: PartProps) {
  const isOpen = picker.isOpen.value
  return (
    <div
      class="picker-list"
      id={`${id}-list`}
      role="listbox"
      aria-label={LABEL}
      hidden={!isOpen}
      // The search box keeps the focus.
      onMouseDown={(event) => event.preventDefault()}
    >
      {isOpen &&
        picker.matches.value.map((entry, index) => (
          <Match
            key={entry.text}
            id={`${id}-${index}`}
            entry={entry}
            isActive={index === picker.active.value}
            onChoose={() => picker.choose(entry)}
          />
        ))}
      {isOpen && picker.matches.value.length === 0 && <p class="empty">No case has these words.</p>}
    </div>
  )
}

interface MatchProps {
  readonly id: string
  readonly entry: Entry
  readonly isActive: boolean
  readonly onChoose: () => void
}

function Match({ id, entry, isActive, onChoose }: MatchProps) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isActive) element.current?.scrollIntoView({ block: 'nearest' })
  }, [isActive])
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: The focus stays in the search box.
    // biome-ignore lint/a11y/useKeyWithClickEvents: The search box takes the keys.
    <div
      class={isActive ? 'picker-option picker-active' : 'picker-option'}
      id={id}
      role="option"
      aria-selected={isActive}
      ref={element}
      onClick={onChoose}
    >
      <span>{entry.text}</span>
      {entry.why && <span class="picker-why">{entry.why}</span>}
    </div>
  )
}

function hintFor(chosen: string | undefined): string {
  const catalogue = hostileTokens.value
  if (!catalogue) return 'The package’s catalogue of hostile tokens.'
  if (chosen === undefined) return `${catalogue.length} hostile tokens of the package’s catalogue.`
  const why = catalogue.find(({ name }) => name === chosen)?.why ?? 'The catalogue has no such case'
  return `${why}. It is sent in place of the token above, with its own claims.`
}
