const SVG = 'http://www.w3.org/2000/svg'
const WIDTH = 600
const HEIGHT = 120
const SECONDS = 60
export const OUTCOMES = ['accepted', 'refused', 'undecided']

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  return element
}

/** Draws a bar for each second of the last minute, with a part for each outcome; now is on the right. */
export function drawPlot(group, decisions, now) {
  const seconds = Array.from({ length: SECONDS }, () => ({ accepted: 0, refused: 0, undecided: 0 }))
  for (const { at, outcome } of decisions) {
    const second = seconds[SECONDS - 1 - Math.floor((now - at) / 1000)]
    if (second) second[outcome] += 1
  }
  const most = Math.max(4, ...seconds.map((second) => sum(Object.values(second))))
  const width = WIDTH / SECONDS
  const bars = seconds.flatMap((second, index) => {
    let top = HEIGHT - 1
    return OUTCOMES.filter((outcome) => second[outcome] > 0).map((outcome) => {
      const height = (second[outcome] / most) * (HEIGHT - 2)
      top -= height
      return shape('rect', { class: outcome, x: index * width, y: top, width: width - 1, height })
    })
  })
  const ground = shape('line', { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 })
  group.replaceChildren(ground, ...bars)
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0)
